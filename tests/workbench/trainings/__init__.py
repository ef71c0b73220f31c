"""Tests of trainings."""
