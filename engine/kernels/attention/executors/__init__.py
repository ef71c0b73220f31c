"""Executors: threads of this machine, or modelled processors of a device."""
