"""Tests of paths."""
