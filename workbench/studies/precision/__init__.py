"""Studies of the precision family, found by file name."""
