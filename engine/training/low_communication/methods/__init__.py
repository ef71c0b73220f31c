"""Ways for replicas to agree: one file for each training method, found by folder."""
