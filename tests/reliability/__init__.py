"""The 25 figures of reliability: each tried at a size, with what came out."""
