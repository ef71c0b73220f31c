"""Tests of knobs."""
