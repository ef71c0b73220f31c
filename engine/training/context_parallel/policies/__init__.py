"""Ways to compute attention over a split sequence."""
