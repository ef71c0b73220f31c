"""Real execution: a step's batch, its forward pass and the sampler."""
