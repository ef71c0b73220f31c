"""Nothing global: no mutable module state, no environment reads."""

import ast
import re

from tests.architecture.sources import ROOT, sources

MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def module_state(tree: ast.Module) -> list[ast.stmt]:
    """Assignments at module level of a mutable value to a name that is not a constant."""
    found = []
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, MUTABLE):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            if any(not n.isupper() and not n.startswith("__") for n in names):
                found.append(node)
    return found


def reads_environment(tree: ast.Module) -> bool:
    names = {ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return bool(names & {"os.environ", "os.getenv", "os.putenv"})


def test_no_module_keeps_mutable_state():
    wrong = {m: [ast.unparse(n)[:60] for n in module_state(t)] for m, t in sources().items()}
    assert not {m: found for m, found in wrong.items() if found}


def test_no_function_rebinds_a_global():
    wrong = [m for m, t in sources().items() if any(isinstance(n, ast.Global) for n in ast.walk(t))]
    assert not wrong


def test_only_the_command_line_reads_the_environment():
    wrong = [m for m, t in sources().items() if reads_environment(t)]
    assert not [m for m in wrong if not m.startswith("workbench.cli.")]


def test_the_checks_say_no_to_what_they_forbid():
    assert module_state(ast.parse("seen = []"))
    assert reads_environment(ast.parse("import os\nx = os.environ['A']"))


def test_datasets_hold_data_only():
    assert not list((ROOT / "datasets").rglob("*.py"))


def test_the_top_level_holds_what_it_says_and_no_more():
    named = {"pyproject.toml", "README.md", "CONTRIBUTING.md", "LICENSE", "CHANGELOG.md"}
    named |= {"workbench", "notebooks", "engine", "widgets", "tests", "datasets"}
    visible = {p.name for p in ROOT.iterdir() if not p.name.startswith(".")}
    assert visible - named <= {"parallel_workbench.egg-info", "build", "dist", "__pycache__"}


def test_no_file_names_this_machine_or_a_registry():
    pattern = re.compile(r"/work/|/root/|file:///|pypi-more|artifactory|\.internal\b")
    texts = (".py", ".js", ".toml", ".md", ".ipynb", ".json")
    wrong = []
    for folder in ("engine", "widgets", "workbench", "notebooks", "datasets", "tests"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix not in texts or path.name in ("tokenizer.json", "test_no_globals.py"):
                continue
            if pattern.search(path.read_text(errors="replace")):
                wrong.append(str(path.relative_to(ROOT)))
    assert not wrong
