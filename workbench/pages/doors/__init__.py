"""Doors: what a person brings (a model, a trace, a cluster, a claim) and where it leads."""
