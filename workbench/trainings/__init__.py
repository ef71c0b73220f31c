"""Claims about models taught here, judged over several trainings of each, and the record of it."""
