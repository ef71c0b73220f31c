"""Tests of canvas."""
