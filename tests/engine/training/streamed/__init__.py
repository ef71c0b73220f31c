"""Tests of streamed."""
