"""ZeRO's stages."""
