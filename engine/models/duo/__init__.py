"""Feed-forwards of two sizes in every layer (Duo-LLM, arXiv 2410.10846): shape, routes, search."""
