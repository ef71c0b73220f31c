"""Studies of the hardware family, found by file name."""
