"""Reading of the roofline, in words."""

EXPLAIN = (
    (
        "What it shows",
        "For each operation how fast it ran and how fast it could have, given the memory and "
        "arithmetic of the machine.",
    ),
    (
        "Across",
        "Arithmetic intensity: operations for each byte moved, in FLOP/B, on a logarithmic axis.",
    ),
    (
        "Down",
        "Speed reached, in FLOP/s, on a logarithmic axis. Slanted roofs are memory, flat ones "
        "arithmetic; left of where they meet memory binds, right of it arithmetic.",
    ),
    (
        "Colours",
        "The shape says the phase (circle prefill, triangle decode, square training), the area "
        "the share of time, hollow and dashed that it is modelled. Roofs that were measured are "
        "full lines, those of a data sheet thin.",
    ),
    (
        "Try",
        "Point at a mark: the line above it is what is missing. The table is sorted by the time "
        "that this gap costs.",
    ),
)
