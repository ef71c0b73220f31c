"""BatchLLM's checks: jobs that share prefixes, and the order of their groups."""
