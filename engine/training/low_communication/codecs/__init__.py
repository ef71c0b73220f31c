"""What a vector becomes on the wire: one file for each encoding, found by folder."""
