"""Exports of a run: a page that replays it, and files to download."""
