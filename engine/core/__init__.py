"""Config, events, log, run and measures. Nothing here knows torch."""
