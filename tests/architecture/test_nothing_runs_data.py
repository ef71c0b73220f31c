"""Nothing in the packages turns data into code: no pickle, eval, shell, or markup made of text."""

import ast
import re

from tests.architecture.sources import ROOT, imports, sources

MODULES = frozenset(
    ("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib",
     "jsonpickle", "code", "codeop", "commands", "pty")
)  # fmt: skip
NAMES = frozenset(("eval", "exec", "execfile", "__builtins__"))  # however they are used
ATTRIBUTES = {  # of a module: what may not be taken from it, called or not
    "torch": {"load"},
    "torch.jit": {"load"},
    "torch.hub": {"load"},
    "torch.serialization": {"load"},
    "os": {"system", "popen"},
    "subprocess": {"getoutput", "getstatusoutput"},
    "yaml": {"load", "load_all", "full_load", "unsafe_load", "unsafe_load_all"},
    "builtins": {"eval", "exec", "compile"},
    "pandas": {"read_pickle", "eval"},
    "numpy": {"fromregex"},
}
SINKS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment"
    r"|(?<![.\w])eval\s*\(|new Function|srcdoc|javascript:|dangerouslySetInnerHTML"
)
# The one way markup is made in a script: of constants and of times written by `seconds`.
ESCAPED = 'srcdoc="{escape(page('  # a whole page of ours, itself escaped
CONSTANT = re.compile(r"\.innerHTML = `(?:[^`$]|\$\{seconds\([^{}`]*\)\})*`$")


def aliases(tree):
    """What a local name stands for: import torch as t; from os import path."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                found[name.asname or name.name.partition(".")[0]] = (
                    name.name if name.asname else name.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                found[name.asname or name.name] = f"{node.module}.{name.name}"
    return found


def taken(tree):
    """(line, full name) of every name or attribute that is used, through its alias."""
    known = aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            first, _, rest = spelled(node).partition(".")
            yield node.lineno, ".".join(filter(None, (known.get(first, first), rest)))


def spelled(node):
    """A name or attribute as it is written. Most are dotted names, which need no printer."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{spelled(node.value)}.{node.attr}"
    return ast.unparse(node)


def runs_data(tree):
    """What in the file could run data as code, or unpickle it."""
    found = [f"line {line}: {name}" for name, line in imports(tree) if _first(name) in MODULES]
    forbidden = {f"{module}.{name}" for module, names in ATTRIBUTES.items() for name in names}
    for line, name in taken(tree):
        if name in NAMES or name in forbidden:
            found.append(f"line {line}: {name}")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        for word in node.keywords:
            off = isinstance(word.value, ast.Constant) and word.value.value in (False, None)
            if word.arg in ("shell", "allow_pickle", "trust_remote_code") and not off:
                found.append(f"line {node.lineno}: {called}({word.arg}=…)")
        named = [a.value for a in node.args if isinstance(a, ast.Constant)]
        if called == "getattr" and any(n in NAMES for n in named if isinstance(n, str)):
            found.append(f"line {node.lineno}: getattr of {named}")
        if called == "compile":
            found.append(f"line {node.lineno}: compile")
    return found


def _first(name):
    return name.partition(".")[0]


def scripts():
    """Every script of ours, and the Python files that hold some."""
    for folder in ("widgets", "workbench"):
        for pattern in ("*.js", "*.ts", "*.tsx", "*.py"):
            for path in sorted((ROOT / folder).rglob(pattern)):
                if not {"node_modules", "static", "lib", "build"} & set(path.parts):
                    yield path


def test_nothing_runs_or_unpickles_data():
    wrong = {module: runs_data(tree) for module, tree in sources().items()}
    assert not {module: found for module, found in wrong.items() if found}


def test_no_script_makes_markup_or_code_of_text():
    wrong = []
    for path in scripts():
        for line in path.read_text().splitlines():
            known = CONSTANT.search(line.rstrip(";")) or ESCAPED in line
            if SINKS.search(line) and not known:
                wrong.append(f"{path.relative_to(ROOT)}: {line.strip()[:100]}")
    assert not wrong


def test_the_check_says_no_to_every_way_it_knows():
    for text in (
        "def f():\n    import pickle",
        "from torch import load\nload(p)",
        "import torch as t\nt.load(p)",
        "f = torch.load",
        "import importlib\nimportlib.import_module('dill')",
        "list(map(eval, rows))",
        "getattr(builtins, 'exec')(text)",
        "from os import system as say\nsay('ls')",
        "subprocess.run(text, shell=True)",
        "subprocess.run(text, shell=flag)",
        "np.load(path, allow_pickle=True)",
        "import yaml\nyaml.load(text)",
        "from yaml import unsafe_load\nunsafe_load(text)",
        "compile(text, 'a', 'exec')",
        "AutoModel.from_pretrained(name, trust_remote_code=True)",
    ):
        assert runs_data(ast.parse(text)), text
    for text in (
        "model.eval()",
        "import json\njson.load(f)",
        "re.compile(x)",
        "import torch\ntorch.compile(f)",
        "from engine.core.file import load\nload(p)",
        "np.load(path, allow_pickle=False)",
    ):
        assert not runs_data(ast.parse(text)), text
    assert SINKS.search("a.innerHTML = text") and not CONSTANT.search("a.innerHTML = text")
    assert not CONSTANT.search("a.innerHTML = `<b>${name}</b>`")
