"""Many devices under one virtual clock."""
