"""Countdown as it is imitated, reinforced and scored."""
