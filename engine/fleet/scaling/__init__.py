"""Autoscaling policies: how many replicas of a fleet serve."""
