"""Tests of threads."""
