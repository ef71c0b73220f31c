"""Recipes: how each shipped model is made, from its task's examples to its folder and card."""
