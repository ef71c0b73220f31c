"""Spawned threads: a thread that spawns children and joins their answers."""
