"""Tests of spawning."""
