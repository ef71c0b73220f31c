"""Serving requests: the scheduler's loop, its policies, sampling and the executors under it."""
