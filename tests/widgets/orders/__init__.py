"""Policies for the control panel's tests."""
