"""Reading of request lanes, in words."""

EXPLAIN = (
    (
        "What it shows",
        "One lane for each request, from its arrival to its end; above them a bar for each step "
        "of the scheduler.",
    ),
    ("Across", "Time in seconds since the run began; on a live page the last seconds before now."),
    (
        "Down",
        "Requests in order of arrival. A step's bar is as high as the tokens in its batch: dark "
        "the decoded, pale the prefilled.",
    ),
    (
        "Colours",
        "A hue for each request, the same in every view; beyond eight they come again, with a "
        "dot in the swatch beside the name. A thin line waits in the queue, a full box prefills "
        "(its number: tokens), ticks are tokens decoded, a hollow box was preempted, a dashed "
        "one swapped out, a dot is where the request ended.",
    ),
    (
        "Try",
        "Click a step: all but its batch steps back. Drag over a range with Shift for sums, "
        "means and p99 by kind.",
    ),
)
