"""Training over many devices."""
