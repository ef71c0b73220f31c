"""Tests of multi_stream."""
