"""The operations models are made of, a folder each: `reference.py` is the truth.

Import the operation (`engine.kernels.matmul`); this package itself loads neither torch nor numba.
"""
