"""Losses: language modelling, examples, tries and policy gradients."""
