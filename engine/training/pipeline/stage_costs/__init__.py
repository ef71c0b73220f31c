"""Where a pipeline's pass times and bytes come from: given outright, or from a model's shape."""
