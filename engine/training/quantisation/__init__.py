"""Quantisation of a model's linear layers: rounded after training, or trained to be rounded."""
