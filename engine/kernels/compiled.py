"""How CPU kernels are compiled: numba to machine code, cached on disk, OpenMP threads.

The cache of a kernel is dropped when any file of `engine/kernels` that it is made of changes,
since a kernel inlines what other files say and numba alone looks at its own file only.
Processes that ran a kernel must not fork: OpenMP aborts in the child.
"""

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba._dispatcher import compute_fingerprint
from numba.extending import intrinsic

from engine.core.clock import aside
from engine.hardware.kept_code import Kept, keep

numba.config.THREADING_LAYER = "omp"  # type: ignore[attr-defined]

# Only the sign of zero is free. Anything more (reordered sums, fused products, reciprocals) lets
# LLVM round differently in a loop's wide and narrow versions, and which one runs depends on
# addresses and lengths: a row would get other bits in another batch. Fused steps are asked for by
# name.
FAST = {"nsz"}

_ROOT = Path(__file__).parent
_IMPORT = re.compile(r"^[ \t]*from (engine\.kernels[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
_NAME = re.compile(r"\w+")


def _file(module: str) -> Path | None:
    """The source file of a module of this package; None where there is none of that name."""
    path = _ROOT.joinpath(*module.split(".")[2:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


@cache
def _sources(module: str) -> frozenset[Path]:
    """The files of this package that a module imports, directly or not, and its own."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        file = _file(waiting.pop())
        if file is None or file in found:
            continue
        found.add(file)
        waiting += _imports(file)
    return frozenset(found)


@cache
def _imports(file: Path) -> list[str]:
    """What a file says it imports of this package: modules, and names that may be modules.

    Read as text: every process that imports kernels pays for it, and syntax trees cost tenfold.
    """
    return [
        told
        for module, names in _IMPORT.findall(file.read_text("utf-8"))
        for told in (module, *(f"{module}.{name}" for name in _NAME.findall(names)))
    ]


@cache
def _stamp(module: str) -> str:
    """A digest of every source file that the kernels of a module are made of."""
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(_sources(module)):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _compiler(**options: Any) -> Any:
    """Numba's, without a way in as a callback, which nobody takes: a tenth of compiling."""
    known: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    return numba.njit(**known, **options)


def _cached(dispatcher: Any) -> Any:
    keep(dispatcher, _stamp(dispatcher.py_func.__module__))
    compiles, template = dispatcher.compile, dispatcher.get_call_template

    def compile_aside(signature: Any) -> Any:
        """Compiled, loaded or waited for once on a machine: in no run's time."""
        with aside():
            return compiles(signature)

    def for_any(args: Any, kws: Any) -> Any:
        """Compiled once for numbers, not once more for each that a caller writes out."""
        plain = {name: types.unliteral(kind) for name, kind in kws.items()}
        return template(tuple(map(types.unliteral, args)), plain)

    dispatcher.compile, dispatcher.get_call_template = compile_aside, for_any
    return dispatcher


def checked(function: Callable[..., Any]) -> Any:
    """Compile with every index held against its array's size; raises IndexError beyond it."""
    return _cached(_compiler(boundscheck=True)(function))


def emitted(function: Callable[..., Any]) -> Any:
    """A function kernels may call whose body is LLVM code that the function builds."""
    return intrinsic(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile an entry point: called from Python, releases the lock, may use `prange`."""
    return _cached(_compiler(parallel=True, fastmath=FAST)(function))


def serial(function: Callable[..., Any]) -> Any:
    """Compile an entry point of one thread."""
    return _cached(_compiler(fastmath=FAST)(function))


def body(function: Callable[..., Any]) -> Any:
    """Compile what a thread of an entry point runs, to be called by address (`address`, `call`).

    Numba optimises a callee again inside each caller; a call by address is compiled once.
    """
    return _part(function)


def inner(function: Callable[..., Any]) -> Any:
    """Compile a part that kernels call; it is linked into them. Kept too, so that a process which
    compiles another kernel of it finds it."""
    return _part(function)


def _part(function: Callable[..., Any]) -> Any:
    """What compiled code alone calls, without a way in from Python: a tenth of compiling."""
    part = _cached(_compiler(fastmath=FAST, no_cpython_wrapper=True)(function))

    def refuse(*arguments: Any, **more: Any) -> Any:
        raise TypeError(f"{function.__name__}: a part of kernels, with no way in from Python")

    def add(result: Any) -> None:
        """Known to kernels, and not to who calls from Python: there is nothing to enter."""
        part.overloads[tuple(result.signature.args)] = result

    part._compile_for_args, part.add_overload = refuse, add
    return part


def pasted(function: Callable[..., Any]) -> Any:
    """A part pasted into its caller before types are known: cheaper to compile if called once."""
    return _compiler(fastmath=FAST, inline="always")(function)


def entry(function: Any, *arguments: Any) -> Callable[..., Any]:
    """What a `kernel` or `serial` enters for arguments of these types; nobody checks them then.

    Arrays must keep their dtype and stay contiguous; compiles it if new.
    """
    if function.targetoptions.get("no_cpython_wrapper"):
        raise ValueError(f"{function.__name__}: a part of kernels, with no way in from Python")
    kinds = tuple(numba.typeof(argument) for argument in arguments)
    function.compile(kinds)
    return function.overloads[kinds].entry_point


@cache
def _by_kinds(function: Any, what: str) -> dict[tuple[bytes, ...], Any]:
    """Entries or addresses of a function that were asked for, by the kinds of its arguments."""
    return {}


def remembered(function: Any, *arguments: Any) -> Callable[..., Any]:
    """`entry`, found by a glance at the kinds of arguments that came before: numba's own look at
    them takes longer than a small kernel does."""
    known, kinds = _by_kinds(function, "entry"), tuple(map(compute_fingerprint, arguments))
    if kinds not in known:
        known[kinds] = entry(function, *arguments)
    found: Callable[..., Any] = known[kinds]
    return found


def settled(function: Any) -> Callable[..., Any]:
    """`function` for a caller whose arguments have the same types in every call: they are looked at
    in the first alone, since a tuple of arrays takes longer to look at than most calls take.

    Arrays must keep their dtype and stay contiguous.
    """

    enter: Callable[..., Any]

    def first(*arguments: Any) -> Any:
        nonlocal enter
        enter = remembered(function, *arguments)  # a fleet has thousands of callers alike
        return enter(*arguments)

    enter = first
    return lambda *arguments: enter(*arguments)


def address(function: Any, *arguments: Any) -> int:
    """Where the machine code of a `body` for arguments like these begins; compiles it if new."""
    known, seen = _by_kinds(function, "address"), tuple(map(compute_fingerprint, arguments))
    if seen not in known:
        kinds = tuple(numba.typeof(argument) for argument in arguments)
        function.compile(kinds)
        result = function.overloads[kinds]
        known[seen] = int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))
    found: int = known[seen]
    return found


def is_cached(function: Any, *arguments: Any) -> bool:
    """Whether a `body`'s machine code for arguments like these is at hand or on disk."""
    kinds = tuple(numba.typeof(argument) for argument in arguments)
    if kinds in function.overloads:
        return True
    kept = function._cache
    return isinstance(kept, Kept) and kept.kept(kinds, function.targetctx) is not None


@emitted
def call(context, place, arguments):
    """Call the `body` at an address with a tuple of arguments; it returns nothing."""
    signature = types.void(types.int64, arguments)

    def emit(target, builder, signature, args):
        kinds = list(signature.args[1].types)
        kind = target.call_conv.get_function_type(types.none, kinds)
        function = builder.inttoptr(args[0], kind.as_pointer())
        values = [builder.extract_value(args[1], i) for i in range(len(kinds))]
        target.call_conv.call_function(builder, function, types.none, kinds, values)
        return target.get_dummy_value()

    return signature, emit
