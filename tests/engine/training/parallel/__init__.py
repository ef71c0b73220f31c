"""Training on meshes of ranks."""
