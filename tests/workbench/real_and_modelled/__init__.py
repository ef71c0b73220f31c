"""Tests of real_and_modelled."""
