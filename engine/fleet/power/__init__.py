"""Power of a fleet: what its devices draw by phase, and whose clocks are capped under a budget."""
