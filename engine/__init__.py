"""The execution engine: kernels, models, caches, schedulers and the clocks they run under."""
