"""Reading of acceptance, in words."""

EXPLAIN = (
    ("What it shows", "How many of the tokens that a draft proposed the target kept."),
    (
        "Across",
        "The draft's place in its step; in the last plot, tokens that a verification came to.",
    ),
    (
        "Down",
        "The share that held of those judged at that place, the share kept of all made, and the "
        "share of verifications that came to so many tokens or more.",
    ),
    ("Colours", "A hue for each plot; dashed lines are modelled."),
    ("Try", "Choose a request in another view for its own curves."),
)
