"""Search over fleet designs: which one keeps a service-level objective, and at what cost."""
