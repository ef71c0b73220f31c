"""Repeated sampling: coverage of verified answers over the number of samples."""
