"""Batching policies: what one step mixes of decodes, prompt chunks and new requests."""
