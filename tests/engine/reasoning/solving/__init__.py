"""Tests of solving."""
