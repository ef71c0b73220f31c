"""Reading of the cache view, in words."""

EXPLAIN = (
    (
        "What it shows",
        "Every page (block) of the KV cache and whose keys and values it holds at the cursor; "
        "at the right the tree of shared prefixes and what was decided; below, how full the "
        "cache was over time.",
    ),
    (
        "Across and down",
        "By memory: pages in their physical order, row by row. By owner: a row for each request "
        "or thread, its pages in logical order. In the tree, width is tokens and each row one "
        "block more.",
    ),
    (
        "Colours",
        "The hue is the owner's. A number says how many share a page; a rim, that this step "
        "wrote it; half a cell, that it is half filled. Pages kept for a prefix fade with age, "
        "free ones are the ground.",
    ),
    (
        "Try",
        "Point at a page for its owner, positions and history; click it to light up its owner "
        "in all views.",
    ),
)
