"""Reading of the token river, in words."""

EXPLAIN = (
    (
        "What it shows",
        "What each request says, token by token, and how sure the model was of it; the lane "
        "under the pointer is written out at the foot.",
    ),
    ("Across", "Time in seconds since the run began."),
    ("Down", "Requests in order of arrival."),
    (
        "Colours",
        "The hue is the request's, its strength the probability of the token: full for sure, "
        "pale for unlikely. Grey and half as high: a draft that verification refused; a bar "
        "beneath: one that held.",
    ),
    ("Try", "Zoom in until tokens become text; point at one for its probability."),
)
