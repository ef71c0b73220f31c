"""Other engines, measured where they are installed: an adapter a file, found by file name."""

from workbench.benches._peers.measure import measure, names

__all__ = ["measure", "names"]
