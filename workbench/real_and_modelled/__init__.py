"""A real run beside its modelled twin: calibration and comparison."""
