"""Reading of the levels, in words."""

EXPLAIN = (
    (
        "What it shows",
        "How much of each thing there was at every moment: requests running and waiting, pages "
        "used, tokens in a step.",
    ),
    ("Across", "Time in seconds since the run began."),
    (
        "Down",
        "The quantity that stands above each plot; a dotted line is its limit. Each keeps its "
        "value until it changes.",
    ),
    ("Colours", "A hue for each quantity, named at its right end; dashed lines are modelled."),
    ("Try", "Drag to zoom all plots to a range; point for the values at a moment."),
)
