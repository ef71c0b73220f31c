"""Tests of stage."""
