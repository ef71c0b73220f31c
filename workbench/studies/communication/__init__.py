"""Training and serving over networks that are slow, dear or unsafe."""
