"""The operator cost model: how long an operator takes on a described device."""
