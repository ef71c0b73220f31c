"""Attention on two levels of memory: tilings that really run, and every word they move counted."""
