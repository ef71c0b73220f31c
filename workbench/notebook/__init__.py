"""Notebooks: opening a study in one, making one, running them headless."""
