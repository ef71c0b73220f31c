"""Reading of the frames, in words."""

EXPLAIN = (
    (
        "What it shows",
        "The frames of a game as they were shown, and under each what was thrown away for it.",
    ),
    ("Across", "Frames in order, each with its number and the action that was told."),
    (
        "Colours",
        "Tinted: made ahead, before the action was told. Grey: made once it was told. Struck "
        "through: thrown away. A red rim: the game does not allow it after the frame before.",
    ),
    ("Try", "Point at a frame for the passes it took."),
)
