"""Page parts: Panel components and patches sent together."""
