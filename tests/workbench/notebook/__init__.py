"""Tests of notebook."""
