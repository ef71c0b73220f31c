"""Models by name or folder: checkpoints, safetensors, random weights."""
