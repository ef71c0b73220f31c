"""Exact backward of a language model in pieces of the sequence, and what it is compared with."""
