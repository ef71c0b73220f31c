"""Commands that speak to a server somebody else runs."""
