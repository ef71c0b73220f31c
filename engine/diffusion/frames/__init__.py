"""Frames of a tiny game, generated one after another by diffusion, each from the action told."""
