"""Sandbox: a small language, and the isolated process that generated programs run in."""
