"""Training data: text, token files, packing and windows of tokens."""
