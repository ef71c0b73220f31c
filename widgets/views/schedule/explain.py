"""Reading of the schedule, in words."""

EXPLAIN = (
    (
        "What it shows",
        "What each rank, stream or worker does at every moment, and what it holds in memory.",
    ),
    ("Across", "Time in seconds since the run began."),
    (
        "Down",
        "A lane for each rank or stream; under it a strip of what it sent and received. Below, "
        "bytes held by the lane under the pointer, by kind, up to the limit as a dotted line. "
        "Where spans are thinner than six pixels, a lane shows which share of each moment every "
        "kind took.",
    ),
    (
        "Colours",
        "A hue for each kind of work, two tones by turns for microbatches that follow one "
        "another; grey is idle. Where measured and modelled stand together, the modelled are "
        "the hatched lower part of each lane.",
    ),
    (
        "Try",
        "Point at a pass: its microbatch lights up on all ranks. The critical path shows what "
        "the end waited for.",
    ),
)
