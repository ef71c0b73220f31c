"""Drafts of speculative decoding, row by row: chains, trees, and what is looked up by n-grams."""
