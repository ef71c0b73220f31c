"""Numba's registries of types and functions, filled as this is imported.

A process fills them as it first calls a kernel, which takes a second; those that are forked from
one where they are full have them. It runs no kernel: a process that ran one must not fork.
"""

import numba

_target = numba.core.registry.cpu_target
_target.typing_context.refresh()
_target.target_context.refresh()
