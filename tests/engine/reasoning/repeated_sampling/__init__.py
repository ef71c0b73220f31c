"""Tests of repeated_sampling."""
