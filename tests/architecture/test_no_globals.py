"""Nothing global: no mutable module state, no environment reads, nothing that runs data as code."""

import ast
import re

from tests.architecture.sources import ROOT, imports, sources

MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
RUNS_DATA = {"eval", "exec", "compile"}
UNSAFE = ("pickle", "dill", "cloudpickle", "marshal", "shelve")
SHELL = {"system", "popen", "getoutput"}


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


def calls(tree: ast.Module) -> list[tuple[str, ast.Call]]:
    """(dotted name, call) of every call in the file."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            found.append((ast.unparse(node.func), node))
    return found


def unsafe(tree: ast.Module) -> list[str]:
    """What in the file would run or unpickle data."""
    found = [f"line {line}: {name}" for name, line in imports(tree) if name.split(".")[0] in UNSAFE]
    for name, call in calls(tree):
        shell = any(k.arg == "shell" and not _is_false(k.value) for k in call.keywords)
        loads = name == "torch.load" or any(
            k.arg == "allow_pickle" and not _is_false(k.value) for k in call.keywords
        )
        if name in RUNS_DATA or name in {f"os.{s}" for s in SHELL} or shell or loads:
            found.append(f"line {call.lineno}: {name}")
    return found


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


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


def test_nothing_runs_or_unpickles_data():
    wrong = {m: unsafe(t) for m, t in sources().items()}
    assert not {m: found for m, found in wrong.items() if found}


def test_the_checks_say_no_to_what_they_forbid():
    assert unsafe(ast.parse("import pickle"))
    assert unsafe(ast.parse("torch.load(path)"))
    assert unsafe(ast.parse("subprocess.run(text, shell=True)"))
    assert unsafe(ast.parse("eval(text)"))
    assert module_state(ast.parse("seen = []"))
    assert reads_environment(ast.parse("import os\nx = os.environ['A']"))
    assert not unsafe(ast.parse("model.eval()"))


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
