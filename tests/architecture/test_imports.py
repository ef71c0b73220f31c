"""Imports go one way: a room may import those before it, lazily or not, never those after."""

import ast
import subprocess
import sys

import pytest

from tests.architecture.sources import imports, sources

ROOMS = (
    "engine.core",
    "engine.tasks",
    "engine.hardware",
    "engine.kernels",
    "engine.models",
    "engine.cache",
    "engine.inference",
    "engine.diffusion",
    "engine.reasoning",
    "engine.fleet",
    "engine.distributed",
    "engine.training",
    "engine.cluster",
    "engine.recipes",
    "widgets",
    "workbench",
)
WIDGETS_MAY = ("engine.core", "engine.hardware", "widgets")
OPTIONAL = ("triton", "ray")  # absent on many machines: imported in leaf files only
ROUND = ("numba", "torch")  # their own modules import one another in circles
HEAVY = ("torch", "numba", "panel", "bokeh", "triton", "transformers")


def room(module: str) -> str | None:
    for name in ROOMS:
        if module == name or module.startswith(name + "."):
            return name
    return None


def crossings(module: str, targets: list[tuple[str, int]]) -> list[str]:
    """The imports of `module` that go the wrong way."""
    here = room(module)
    found = []
    for target, line in targets:
        there = room(target)
        if here is None or there is None or here == there:
            continue
        wrong = ROOMS.index(there) > ROOMS.index(here)
        if here == "widgets":
            wrong = there not in WIDGETS_MAY
        if wrong:
            found.append(f"{module}:{line} imports {target}")
    return found


def test_no_room_imports_a_later_one():
    wrong = [c for m, tree in sources().items() for c in crossings(m, list(imports(tree)))]
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_the_check_itself_says_no_to_a_widget_that_knows_the_engine():
    assert crossings("widgets.views.page_map.fold", [("engine.cache.pages", 3)])
    assert crossings("engine.core.log", [("engine.inference.engine", 3)])
    assert not crossings("workbench.cli.main", [("engine.inference.engine", 3)])


def test_optional_packages_are_imported_inside_functions_or_leaf_files_only():
    leaves = (
        "engine.kernels.",
        "engine.distributed.",
        "engine.hardware.measure",
        "workbench.benches",
    )
    wrong = [
        f"{module}:{line} imports {name}"
        for module, tree in sources().items()
        for name, line in imports(tree)
        if name.split(".")[0] in OPTIONAL and not module.startswith(leaves)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "package", ["engine", "engine.core.file", "engine.hardware", "widgets", "workbench"]
)
def test_importing_the_top_packages_does_not_import_torch(package):
    code = f"import sys, {package}; print([m for m in {HEAVY!r} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def parts_alone(tree: ast.Module) -> list[tuple[str, int]]:
    """Imports of a part of a package in ROUND before that of the package itself."""
    found, whole = list[tuple[str, int]](), set[str]()
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in sorted(nodes, key=lambda node: node.lineno):
        alone = isinstance(node, ast.ImportFrom)
        for name in [node.module or ""] if alone else [alias.name for alias in node.names]:
            package, _, part = name.partition(".")
            if part and package in ROUND and package not in whole:
                found.append((name, node.lineno))
            if not part:
                whole.add(package)
    return found


def test_a_package_is_imported_before_its_parts():
    """Python does not make a thread that imports a part wait for another which imports the whole:
    in a package of circles both then find modules that are half there."""
    wrong = [
        f"{module}:{line} imports {name}"
        for module, tree in sources().items()
        for name, line in parts_alone(tree)
    ]
    assert not wrong, "\n".join(wrong)
    assert parts_alone(ast.parse("from numba.core import cgutils"))
    assert not parts_alone(ast.parse("import numba\nfrom numba.core import cgutils"))
