"""Masked diffusion: models that fill in a text in any order, several tokens a step."""
