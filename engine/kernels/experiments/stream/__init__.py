"""STREAM through one interface: vectors, what to assign to them, and backends that do it."""
