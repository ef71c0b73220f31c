"""Tests of shard_rules."""
