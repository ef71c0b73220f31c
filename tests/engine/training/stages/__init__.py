"""Tests of stages."""
