"""Ways to deal a sequence to ranks."""
