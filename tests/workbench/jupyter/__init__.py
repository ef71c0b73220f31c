"""Tests of jupyter."""
