"""Views: one folder each, found by name."""
