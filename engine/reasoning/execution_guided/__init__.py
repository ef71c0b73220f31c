"""Execution-guided generation: candidates of each line are run, what they do steers it."""
