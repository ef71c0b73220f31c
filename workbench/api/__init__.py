"""The OpenAI-compatible API server: requests, answers, access."""
