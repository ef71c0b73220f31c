"""Sections of the kernels' benchmark, found by file name: each exports `rows(full, say)`."""
