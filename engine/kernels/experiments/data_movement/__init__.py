"""Where a kernel's data movement hurts: recorded address streams, caches, locality and classes."""
