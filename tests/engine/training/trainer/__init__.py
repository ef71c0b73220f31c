"""Tests of trainer."""
