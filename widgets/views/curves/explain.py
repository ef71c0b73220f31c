"""Reading of the curves, in words."""

EXPLAIN = (
    (
        "What it shows",
        "The figures that this study is about, each in a panel of its own, over what was swept "
        "or trained.",
    ),
    (
        "Across",
        "What each panel's lower axis names, with its unit; equal steps are equal factors where "
        "the axis is logarithmic.",
    ),
    ("Down", "What each panel's title names, with its unit."),
    (
        "Colours",
        "A hue and a shape of point for each line; dashed lines are modelled, thin grey ones "
        "bounds that theory sets. A band is the interval over seeds.",
    ),
    ("Try", "Point at a line for its value and interval."),
)
