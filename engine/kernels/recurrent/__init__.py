"""Recurrent layers: the gated delta rule and Mamba-2, token by token and in chunks."""
