"""Files do one thing and functions fit a screen."""

import ast

from tests.architecture.sources import ROOT, file_of, files, sources

FILE_LINES = 300
FUNCTION_LINES = 60
INIT_LINES = 20
SCRIPT_LINES = 400  # JavaScript of one view


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def kernel(node: ast.FunctionDef) -> bool:
    """Compiled kernels are one function by nature; they may be longer."""
    return any("jit" in ast.dump(d) or "triton" in ast.dump(d) for d in node.decorator_list)


def test_files_are_short():
    paths = [*files().values(), *(ROOT / "tests").rglob("*.py")]
    lengths = {str(path): len(path.read_text().splitlines()) for path in paths}
    assert not {path: n for path, n in lengths.items() if n > FILE_LINES}


def test_functions_fit_a_screen():
    long = {
        f"{module}.{node.name}": node.end_lineno - node.lineno
        for module, tree in sources().items()
        for node in functions(tree)
        if node.end_lineno - node.lineno > FUNCTION_LINES and not kernel(node)
    }
    assert not long


def test_package_files_only_re_export():
    wrong = [
        module
        for module, tree in sources().items()
        if file_of(module).name == "__init__.py"
        and len(file_of(module).read_text().splitlines()) > INIT_LINES
    ]
    assert not wrong


def test_view_scripts_are_short():
    scripts = {p: len(p.read_text().splitlines()) for p in (ROOT / "widgets").rglob("*.js")}
    assert not {str(p): n for p, n in scripts.items() if n > SCRIPT_LINES}
