"""Pruned traces: many traces of one question, those that will agree stopped early by a judge."""
