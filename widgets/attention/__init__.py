"""The attention reader: every head at a glance, and one of them as token by token tiles."""
