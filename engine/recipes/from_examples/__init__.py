"""Shipped models trained on examples: each file holds one `RECIPE`, found by file name."""
