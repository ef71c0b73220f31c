"""An operator: one computation, its plain truth, and the variants that compute it faster.

`engine/kernels/<op>/__init__.py` exports `OPERATOR`; every file beside it that has a `VARIANT` is a
variant, found by file name. `pick` gives the fastest one that takes the arguments on this machine,
or the one asked for by name. Arguments travel as one mapping, so that reference, variants and work
read the same names.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from engine.core.errors import BadInput
from engine.core.names import suggest

Arguments: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """What a computation must do: flops, and bytes by memory level.

    `bytes["memory"]` is compulsory traffic (every input read once, every output written once);
    further levels ("L1", "L2", "L3", "shared") where an algorithm's own traffic is counted.
    `specials`: exponentials and their like, which run on a unit of their own on some devices.
    """

    flops: float
    bytes: Mapping[str, float]
    specials: float = 0.0

    @property
    def intensity(self) -> float:
        """Flops for each byte of memory traffic."""
        return self.flops / max(self.bytes["memory"], 1.0)


@dataclass(frozen=True)
class Case:
    """Arguments of a named shape. `make(seed, dtype)` gives them on the CPU; dtype is torch's."""

    name: str
    make: Callable[[int, Any], Arguments]


def _takes_all(arguments: Arguments) -> str:
    return ""


def _yields_never(arguments: Arguments) -> bool:
    return False


@dataclass(frozen=True)
class Variant:
    """One algorithm on one kind of device.

    `call(**arguments)` gives what the operator's reference gives. `device`: "cpu" or "cuda"; a CUDA
    variant marked `interpreted` also runs on CPU tensors when asked for by name, through Triton's
    interpreter: exact, and very slow. `refuses(arguments)`: "" or why it cannot take them. Among
    variants that take the arguments the highest `rank` is picked, but for those that say they
    `yields(arguments)`: another is faster there. `gradients`: its outputs can be differentiated.
    `work`: the algorithm's own traffic, where it differs from the operator's.
    """

    name: str
    about: str
    device: str
    call: Callable[..., Any]
    dtypes: tuple[str, ...] = ("float32",)
    rank: int = 1
    gradients: bool = False
    interpreted: bool = False
    refuses: Callable[[Arguments], str] = _takes_all
    yields: Callable[[Arguments], bool] = _yields_never
    work: Callable[[Arguments], Work] | None = None

    def obstacle(self, arguments: Arguments, forced: bool = False) -> str:
        """ "" or why this variant does not run these arguments here."""
        device, dtype = _placed(arguments)
        if dtype not in self.dtypes:
            return f"takes {' or '.join(self.dtypes)}, not {dtype}"
        if device != self.device and not (forced and self.interpreted and device == "cpu"):
            return f"runs on {self.device} tensors, not on {device}"
        return self.refuses(arguments)


@dataclass(frozen=True)
class Operator:
    """One computation. `reference` is the truth in plain torch; its first tensor's dtype rules.

    `cases`: shapes for parity, odd ones among them. `sizes`: shapes worth timing. `tolerances`:
    largest error allowed by dtype, relative to the largest magnitude of the truth in float64.
    `inputs`: names of the arguments that gradients are taken for. `package`: where variants lie.
    """

    name: str
    about: str
    reference: Callable[..., Any]
    work: Callable[[Arguments], Work]
    cases: tuple[Case, ...]
    package: str
    sizes: tuple[Case, ...] = ()
    inputs: tuple[str, ...] = ()
    tolerances: Mapping[str, float] = field(
        default_factory=lambda: {"float32": 2e-5, "bfloat16": 2e-2, "float16": 3e-3}
    )

    def variants(self) -> dict[str, Variant]:
        """Every variant by name, best first."""
        return _variants(self.package)

    def pick(self, arguments: Arguments, forced: str = "") -> Variant:
        """The fastest variant for these arguments, or the one called `forced`.

        Raises BadInput that says of each variant why it cannot take them.
        """
        known = self.variants()
        if forced:
            if forced not in known:
                raise BadInput(
                    f"variant {forced!r} of {self.name}: no such variant; {suggest(forced, known)}"
                )
            obstacle = known[forced].obstacle(arguments, forced=True)
            if obstacle:
                raise BadInput(f"variant {forced!r} of {self.name}: {obstacle}")
            return known[forced]
        obstacles, yielding = [], None
        for variant in known.values():
            obstacle = variant.obstacle(arguments)
            if obstacle:
                obstacles.append(f"{variant.name} {obstacle}")
            elif variant.yields(arguments):
                yielding = yielding or variant
            else:
                return variant
        if yielding is not None:
            return yielding  # nobody it could yield to takes them
        raise BadInput(f"{self.name}: no variant takes these arguments: {'; '.join(obstacles)}")

    def __call__(self, *, variant: str = "", **arguments: Any) -> Any:
        """Compute, by the picked variant."""
        return self.pick(arguments, variant).call(**arguments)


def _placed(arguments: Arguments) -> tuple[str, str]:
    """Device and dtype of the first tensor among the arguments."""
    for value in arguments.values():
        if hasattr(value, "dtype") and hasattr(value, "device"):
            return value.device.type, str(value.dtype).removeprefix("torch.")
    raise BadInput("these arguments hold no tensor; give at least one")


@cache
def _variants(package: str) -> dict[str, Variant]:
    root = importlib.import_module(package)
    found = []
    for module in pkgutil.iter_modules(root.__path__):
        if not module.name.startswith("_"):
            try:
                variant = getattr(
                    importlib.import_module(f"{package}.{module.name}"), "VARIANT", None
                )
            except ModuleNotFoundError as fault:
                if (fault.name or "").split(".")[0] == "engine":
                    raise
                continue  # an optional package (triton) is not installed: no such variant here
            if variant is not None:
                found.append(variant)
    return {v.name: v for v in sorted(found, key=lambda v: (-v.rank, v.name))}


@cache
def operators() -> dict[str, Operator]:
    """Every operator by name, found by folder."""
    found = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.ispkg:
            package = importlib.import_module(f"engine.kernels.{module.name}")
            made = getattr(package, "OPERATOR", None)
            if made is not None:
                found[made.name] = made
    return found


def operator(name: str) -> Operator:
    """The operator of that name. Raises BadInput listing those there are."""
    try:
        return operators()[name]
    except KeyError:
        raise BadInput(
            f"operator {name!r}: no such operator; {suggest(name, operators())}"
        ) from None
