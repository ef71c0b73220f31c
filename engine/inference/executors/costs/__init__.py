"""Modelled execution: what a step costs on a described device, by roofs or fitted curves."""
