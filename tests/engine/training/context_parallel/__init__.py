"""Tests of context_parallel."""
