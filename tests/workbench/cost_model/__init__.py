"""Tests of cost_model."""
