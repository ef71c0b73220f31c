"""What the architecture tests read: every source file of the packages, parsed once."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from workbench.cli.app import no_collection

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("engine", "widgets", "workbench")


def sources() -> dict[str, ast.Module]:
    """Dotted module name -> syntax tree, for every Python file of the packages."""
    return parsed(ROOT)


@cache
def parsed(root: Path) -> dict[str, ast.Module]:
    """The same for any checkout."""
    with no_collection():  # a million nodes, all of which stay
        return {name: ast.parse(path.read_text(), str(path)) for name, path in files(root).items()}


def files(root: Path = ROOT) -> dict[str, Path]:
    """Dotted module name -> its file."""
    paths = (path for package in PACKAGES for path in sorted((root / package).rglob("*.py")))
    return {dotted(path, root): path for path in paths if "node_modules" not in path.parts}


def dotted(path: Path, root: Path = ROOT) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def file_of(module: str) -> Path:
    path = ROOT / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every module a file imports, wherever in the file, with its line; type-only ones too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif _imports_by_name(node):
            name = node.args[0]  # type: ignore[attr-defined]
            yield name.value, node.lineno  # type: ignore[attr-defined]


def _imports_by_name(node: ast.AST) -> bool:
    """A call of importlib.import_module or __import__ with a literal name."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    called = (
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    )
    literal = isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    return called in ("import_module", "__import__") and literal
