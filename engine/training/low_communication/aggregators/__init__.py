"""Ways to combine replicas' vectors: one file for each aggregator, found by folder."""
