"""Tests of page."""
