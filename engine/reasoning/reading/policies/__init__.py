"""Ways to think about what is being read, one to a file."""
