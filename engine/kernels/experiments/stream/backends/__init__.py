"""Backends of STREAM, one a file."""
