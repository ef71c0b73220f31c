"""Traces of requests as they arrived: files in public layouts, read line by line."""
