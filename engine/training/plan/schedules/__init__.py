"""Pipeline schedules: one file for each order of forward and backward passes, found by folder."""
