"""Studies of the decoding family, found by file name."""
