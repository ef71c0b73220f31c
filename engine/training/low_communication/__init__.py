"""Training on replicas that talk little: what they exchange, when, and what they do with it."""
