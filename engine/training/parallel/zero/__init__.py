"""ZeRO: which states replicas shard among themselves, stages 0 to 3."""
