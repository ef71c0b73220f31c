"""Solving test problems by a method of reasoning: one contract, one loop, one driver for all."""
