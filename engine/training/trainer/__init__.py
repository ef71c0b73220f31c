"""The trainer: a model folder trained on token files, on one process or several."""
