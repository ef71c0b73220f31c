"""The training loop and its parts: learning rate, precision, checkpoints, resumption."""
