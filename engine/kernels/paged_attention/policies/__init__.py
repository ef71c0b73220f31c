"""Ways to split a decode step's reduction between workers, found by file name."""
