"""Studies of the attention family, found by file name."""
