"""Canvas drawings: one ES module a view, fed packed frames of a fold."""
