"""Transformers from a Hugging Face folder, run over a paged cache."""
