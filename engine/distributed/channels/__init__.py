"""Channels that collectives' programs go by: memory channels (LL and HB) and the port channel."""
