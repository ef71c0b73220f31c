"""Fork and join over any completion server: a trajectory that splits into parallel requests."""
