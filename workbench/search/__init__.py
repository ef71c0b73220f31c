"""Search in words of knobs, views and help texts."""
