"""Reading of the fleet, in words."""

EXPLAIN = (
    (
        "What it shows",
        "One tile for each replica, by pool, with its work at the cursor; a grid of cells where "
        "there are too many for tiles.",
    ),
    (
        "Across and down",
        "Replicas by pool, in the order of their numbers. Inside a tile: dots are requests that "
        "wait, the bar those that run, the right edge pages of the cache, used and kept.",
    ),
    (
        "Colours",
        "Blue runs, amber waits, green is cache; red a replica that died. In the grid, the "
        "stronger, the more requests it has, running or waiting. Lines and dots between tiles "
        "are requests and caches sent lately.",
    ),
    ("Try", "Click a tile to light up that replica in every view."),
)
