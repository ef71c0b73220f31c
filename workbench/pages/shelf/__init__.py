"""The shelf of an app: runs and traces it keeps, what each person may keep, files it may read."""
