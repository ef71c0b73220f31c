"""Requests, their rows in the running batch, and what one step computes of them."""
