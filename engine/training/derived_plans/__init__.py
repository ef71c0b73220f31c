"""Derived tensor-parallel plans at work: compared with those by hand, run, and trained over."""
