"""Executors of a split attention: processes of this machine, or modelled devices."""
