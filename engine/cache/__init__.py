"""Paged key/value memory: pages, the prefix tree, eviction and the host tier. Knows no torch."""
