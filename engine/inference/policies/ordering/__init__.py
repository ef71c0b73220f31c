"""Ordering policies: which waiting request is next."""
