"""Loads a file of Triton kernels, compiled for the GPU or run by Triton's interpreter.

Triton decides at decoration which of the two a kernel is, so a file `<algorithm>_triton.py`, which
holds `@triton.jit` functions and nothing else, is executed once for each way under a name of its
own; both live side by side in one process. Launch interpreted kernels from one thread at a time.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import ModuleType
from typing import Any

import triton
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from engine.core.errors import BadInput


@cache
def kernels(name: str, interpreted: bool) -> ModuleType:
    """The module `name` with its kernels interpreted (CPU tensors) or compiled (CUDA tensors)."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise BadInput(f"triton kernels {name!r}: no such module")
    alias = f"{name}[{'interpreted' if interpreted else 'compiled'}]"
    spec = importlib.util.spec_from_file_location(alias, found.origin)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module  # Triton looks up what a kernel refers to by its module's name
    before = triton.knobs.runtime.interpret
    triton.knobs.runtime.interpret = interpreted
    try:
        spec.loader.exec_module(module)
    finally:
        triton.knobs.runtime.interpret = before
    if interpreted:
        for name, value in list(vars(module).items()):
            if isinstance(value, InterpretedFunction):
                setattr(module, name, _Interpreted(value))
    return module


class _Interpreted:
    """A kernel the interpreter runs: `kernel[grid](…)` launches it, `kernel(…)` calls it inside."""

    def __init__(self, kernel: InterpretedFunction) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return partial(self._launch, grid)

    def _launch(self, grid: Any, *arguments: Any, **options: Any) -> Any:
        with _interpreted_library():
            return self.kernel[grid](*arguments, **options)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return _call_inside(self.kernel, *arguments, **options)


def _call_inside(kernel: InterpretedFunction, *arguments: Any, **options: Any) -> Any:
    """Call a kernel from an interpreted one. Triton's own way leaves its language patched for good,
    after which nothing in the process compiles."""
    patched = interpreter._patch_lang(kernel.fn)
    try:
        return kernel.rewrite()(*arguments, **options)
    finally:
        if patched is not None:
            patched.restore()


@contextmanager
def _interpreted_library() -> Iterator[None]:
    """Triton's own library (`tl.sum`, `tl.max`) was decorated for compiling when it was imported;
    while an interpreted kernel runs, calls of it are interpreted too."""
    compiled = JITFunction.__call__

    def interpret(function: Any, *arguments: Any, **options: Any) -> Any:
        return _call_inside(InterpretedFunction(function.fn), *arguments, **options)

    JITFunction.__call__ = interpret
    try:
        yield
    finally:
        JITFunction.__call__ = compiled
