"""Tests of the topology view."""
