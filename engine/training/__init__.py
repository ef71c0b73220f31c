"""Training: what small language models need, from source text to a Hugging Face folder."""
