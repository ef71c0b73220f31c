"""Tests of fork and join."""
