"""Ways to get a language model's gradients."""
