"""Reading of the modules, in words."""

EXPLAIN = (
    (
        "What it shows",
        "Which feed-forward each token took in every layer: the big one, the small one or none.",
    ),
    ("Across", "Tokens of the text, in order."),
    (
        "Down",
        "Layers, the first on top; at the right, which share of its tokens took the big one.",
    ),
    (
        "Colours",
        "The hue is the text's. Strong is the big feed-forward, faint the small one, hollow none.",
    ),
    ("Try", "Compare a text with its twin in hindsight, which knew what was to come."),
)
