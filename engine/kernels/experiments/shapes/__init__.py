"""Work for a sweep: operators at shapes a person chooses."""
