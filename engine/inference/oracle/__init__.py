"""Routes found in hindsight through layers with feed-forwards of two sizes (Duo-LLM's oracle)."""
