"""Every Triton kernel compiles to machine code for GPUs that are not here."""

import pytest

pytest.importorskip("triton", reason="triton is not installed here")

from engine.core.errors import BadInput
from engine.kernels import cross_compile
from engine.kernels.triton_source import kernels

LIMIT = {80: 163 * 1024, 90: 227 * 1024}  # shared memory a program may take, by capability
LISTED = [
    pytest.param(module, index, id=f"{module.removeprefix('engine.kernels.')}-{index}-{entry[0]}")
    for module in cross_compile.modules()
    for index, entry in enumerate(getattr(kernels(module, interpreted=False), "COMPILES", ()))
]


@pytest.mark.parametrize("module", cross_compile.modules())
def test_a_kernel_file_lists_what_to_compile(module: str):
    entries = cross_compile.listed(module)
    for name, types, values in entries:
        function = getattr(kernels(module, interpreted=False), name)
        missing = set(function.arg_names) - set(types) - set(values)
        assert not missing, f"{name}: COMPILES says nothing of {sorted(missing)}"


@pytest.mark.parametrize("capability", sorted(LIMIT))
@pytest.mark.parametrize(("module", "index"), LISTED)
def test_a_kernel_compiles_for_a_gpu_not_here(module: str, index: int, capability: int):
    if capability < getattr(kernels(module, interpreted=False), "CAPABLE", 0):
        pytest.skip("that GPU has no such numbers")
    name, types, values = cross_compile.listed(module)[index]
    made = cross_compile.compile_for(module, name, types, values, capability)
    assert made.size > 0 and f"sm_{capability}" in made.ptx
    assert made.shared <= LIMIT[capability], f"{name} takes {made.shared} B of shared memory"


def test_a_kernel_that_is_not_there_is_named():
    module = "engine.kernels.norm.rows_triton"
    with pytest.raises(BadInput, match="no kernel there"):
        cross_compile.compile_for(module, "nothing", {}, {}, 90)
