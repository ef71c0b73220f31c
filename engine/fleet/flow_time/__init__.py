"""Flow time: jobs on one machine whose sizes are known before, while, or only after they run."""
