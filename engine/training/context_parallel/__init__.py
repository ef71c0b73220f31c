"""Context parallelism: attention over a sequence split among ranks, forward and backward."""
