"""Training on a mesh of ranks: sharded layers, replicas, ZeRO, and all of them together."""
