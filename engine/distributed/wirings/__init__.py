"""Ways to join ranks."""
