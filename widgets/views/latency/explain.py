"""Reading of the latency view, in words: which quantile of the requests was how quick."""

EXPLAIN = (
    (
        "What it shows",
        "Which share of the requests was served within a time: to the first token (TTFT), for "
        "each further token in a request's mean (TPOT), and to the end.",
    ),
    ("Across", "The latency, in seconds."),
    (
        "Down",
        "The share of requests that were this quick or quicker; p50, p90 and p99 are marked "
        "with their values.",
    ),
    (
        "Colours",
        "A hue for each of the three latencies; dashed lines are modelled. A vertical line is a "
        "promised latency (SLO): drag the grip called limit, or press L.",
    ),
    (
        "Try",
        "The further right a curve bends over, the longer the slowest wait. Move the cursor to "
        "see what was known by then.",
    ),
)
