"""Admission policies: whether there is room for one more request."""
