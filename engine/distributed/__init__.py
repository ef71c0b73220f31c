"""Ranks as processes: launch, a transport that records every transfer, faults named."""
