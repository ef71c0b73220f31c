"""Pipeline plans as data: actions, their checks, times, memory and search."""
