"""Views of a run: pure folds of its event log and thin drawings of the result."""
