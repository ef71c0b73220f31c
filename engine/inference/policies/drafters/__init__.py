"""Policies that draft, each found by its kind."""
