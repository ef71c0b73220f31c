"""Reading of the thread view, in words."""

EXPLAIN = (
    (
        "What it shows",
        "One lane for each thread of thought, where it forked, whom it read and how it ended; "
        "at the right which blocks each thread sees at the cursor.",
    ),
    (
        "Across",
        "Time in seconds, steps of the engine, or tokens along the thread's own path, as the "
        "switch says.",
    ),
    (
        "Down",
        "Threads in order of appearance, forks under their parents. In the matrix, a column for "
        "each block.",
    ),
    (
        "Colours",
        "The hue is the thread's, its strength the probability of each token. A thin line "
        "waits, a dot is a fork, an arrowhead a read, a grey stump was pruned; the thick line "
        "in ink is the critical path. A filled cell is a block that is seen, its number the "
        "position at which.",
    ),
    (
        "Try",
        "Point at a lane to read its text and see who reads it; on a live run choose a thread "
        "to pause, fork or end it.",
    ),
)
