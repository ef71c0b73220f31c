"""The operator cost model held against tables of measured times."""
