"""Reading of the topology, in words."""

EXPLAIN = (
    (
        "What it shows",
        "How many bytes have travelled between which ranks or devices, up to the cursor.",
    ),
    (
        "Ring",
        "An arrow from sender to receiver, as wide as its share of the busiest pair's bytes, in "
        "the sender's hue.",
    ),
    ("Matrix", "Senders down, receivers across; the stronger, the more bytes."),
    ("Links", "Where messages share links: how much each link carried, the busiest first."),
    ("Try", "Point at an arrow or a cell for bytes, messages and the speed reached."),
)
