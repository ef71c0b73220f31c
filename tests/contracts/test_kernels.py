"""Every operator, found by folder: each variant equals the reference, forward and backward."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from engine.core.errors import BadInput
from engine.kernels.operator import Case, Operator, Variant, operator, operators
from engine.kernels.parity import distance, outputs, placed, wide

DTYPES = ("float32", "bfloat16")
PAIRS = [
    (op, variant)
    for op in operators().values()
    for variant in op.variants().values()
    if variant.device == "cpu" or variant.interpreted or torch.cuda.is_available()
]
CHECKS = [
    pytest.param(op, variant, case, dtype, id=f"{op.name}-{variant.name}-{case.name}-{dtype}")
    for op, variant in PAIRS
    for case in op.cases
    for dtype in DTYPES
    if dtype in variant.dtypes
]


@pytest.fixture(autouse=True)
def nan_filled() -> Iterator[None]:
    """What torch allocates and a variant does not write shows as NaN."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


@contextmanager
def numpy_nan_filled() -> Iterator[None]:
    """What numpy allocates from Python shows as NaN too.

    Only around kernels that are compiled already: numba cannot type a patched `np.empty`.
    """

    def filled(allocate: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        def made(*arguments: Any, **options: Any) -> np.ndarray:
            array = allocate(*arguments, **options)
            if array.dtype.kind == "f":
                array.fill(np.nan)
            return array

        return made

    with pytest.MonkeyPatch.context() as patch:
        for name in ("empty", "empty_like"):
            patch.setattr(np, name, filled(getattr(np, name)))
        yield


def close(found: torch.Tensor, truth: torch.Tensor, tolerance: float, what: str) -> None:
    assert found.shape == truth.shape, what
    assert distance(found, truth) <= tolerance, what


def runs(variant: Variant, given: dict) -> None:
    obstacle = variant.obstacle(given, forced=True)
    if obstacle:
        pytest.skip(obstacle)


@pytest.mark.parametrize(("op", "variant", "case", "dtype"), CHECKS)
def test_a_variant_equals_the_reference(op: Operator, variant: Variant, case: Case, dtype: str):
    given = dict(case.make(0, getattr(torch, dtype)))
    runs(variant, placed(given, variant))
    truth = outputs(op.reference(**wide(given)))
    if variant.device == "cpu":
        variant.call(**placed(given, variant))  # compiles
    with numpy_nan_filled():
        found = outputs(variant.call(**placed(given, variant)))
    assert len(found) == len(truth)
    for index, (ours, true) in enumerate(zip(found, truth, strict=True)):
        close(ours, true, op.tolerances[dtype], f"output {index}")


def graded() -> Iterator[Any]:
    """Those of variants with gradients: rounded numbers of their first case, of all by --full."""
    seen = set()
    for check in CHECKS:
        op, variant, _, dtype = check.values
        if variant.gradients:
            again = dtype != "float32" and (op.name, variant.name, dtype) in seen
            seen.add((op.name, variant.name, dtype))
            marks = [pytest.mark.slow] if again else []
            yield pytest.param(*check.values, id=check.id, marks=marks)


@pytest.mark.parametrize(("op", "variant", "case", "dtype"), [*graded()])
def test_its_gradients_equal_the_references(op: Operator, variant: Variant, case: Case, dtype: str):
    given = dict(case.make(1, getattr(torch, dtype)))
    runs(variant, placed(given, variant))
    if variant.device == "cpu":
        _gradients(op, variant.call, placed(given, variant))  # compiles
    with numpy_nan_filled():
        ours = _gradients(op, variant.call, placed(given, variant))
    true = _gradients(op, op.reference, wide(given))
    for name in op.inputs:
        close(ours[name], true[name], 4 * op.tolerances[dtype], f"gradient of {name}")


def _gradients(op: Operator, call, given: dict) -> dict[str, torch.Tensor]:
    leaves = {name: given[name].detach().requires_grad_() for name in op.inputs}
    results = [t for t in outputs(call(**{**given, **leaves})) if t.requires_grad]
    draw = torch.Generator().manual_seed(7)
    sent = [torch.randn(t.shape, generator=draw).to(t.device, t.dtype) for t in results]
    found = torch.autograd.grad(results, list(leaves.values()), sent)
    return dict(zip(leaves, found, strict=True))


@pytest.mark.parametrize(("op", "variant"), PAIRS, ids=lambda one: one.name)
def test_a_variant_takes_a_case_of_each_dtype_it_names(op: Operator, variant: Variant):
    for dtype in set(variant.dtypes) & set(DTYPES):
        given = [dict(case.make(0, getattr(torch, dtype))) for case in op.cases]
        obstacles = [variant.obstacle(placed(one, variant), forced=True) for one in given]
        assert "" in obstacles, f"{dtype}: {obstacles[0]}"


@pytest.mark.parametrize("op", operators().values(), ids=lambda op: op.name)
def test_an_operator_is_told_and_its_work_counts(op: Operator):
    assert op.about and op.cases and op.sizes
    assert any(variant.device == "cpu" for variant in op.variants().values())
    for case in op.sizes[:1]:
        work = op.work(case.make(0, torch.float32))
        assert work.flops > 0 and work.bytes["memory"] > 0


@pytest.mark.parametrize("op", operators().values(), ids=lambda op: op.name)
def test_a_pick_can_be_forced_and_refuses_in_one_line(op: Operator):
    given = op.cases[0].make(0, torch.float32)
    assert op.pick(given) in op.variants().values()
    with pytest.raises(BadInput, match="no such variant; one of"):
        op.pick(given, "fastest")
    doubled = {
        k: v.double() if torch.is_tensor(v) and v.is_floating_point() else v
        for k, v in given.items()
    }
    with pytest.raises(BadInput, match="float64"):
        op.pick(doubled)


def test_an_unknown_operator_is_answered_with_the_nearest():
    with pytest.raises(BadInput, match="did you mean norm"):
        operator("nrom")
