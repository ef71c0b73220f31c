"""Studies of the serving family, found by file name."""
