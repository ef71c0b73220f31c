"""Verifiers, one to a file."""
