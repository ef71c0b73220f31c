"""Reading of the unmasking, in words."""

EXPLAIN = (
    (
        "What it shows",
        "In which order the positions of a text were decided by a masked-diffusion model.",
    ),
    ("Across", "Positions in the text."),
    ("Down", "Steps, the first on top."),
    (
        "Colours",
        "The hue is the text's. Full: decided in this step. Pale: decided before. Grey: still "
        "masked.",
    ),
    ("Try", "Point at a cell for the token and the score by which it was chosen."),
)
