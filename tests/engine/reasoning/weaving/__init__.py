"""Tests of weaving."""
