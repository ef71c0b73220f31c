"""Kinds of workload: where the requests of a run come from."""
