"""Policy families as the sources state them: bases, folders, kinds, and who holds a choice of one.

Read from syntax alone, so that any checkout can be asked, and what finds policies by folder at run
time has something to be held to.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tests.architecture.graph import Graph


@dataclass(frozen=True)
class Base:
    """A base of policies: where it stands and in which package or module its policies lie."""

    module: str
    name: str
    folder: str


@dataclass(frozen=True)
class Concrete:
    """A policy that can be chosen, by its kind."""

    module: str
    name: str
    kind: str


@dataclass(frozen=True)
class Field:
    """A config's `Choice[base]` field, with its default's kind ("": given in another way)."""

    module: str
    name: str
    base: Base
    default: str


class Policies:
    """The policy families of a checkout."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.bases = list(self._bases())
        self.concrete = {base: list(self._concrete(base.folder)) for base in self.bases}
        self.fields = [field for module in graph.trees for field in self._fields(module)]

    def _bases(self) -> Iterator[Base]:
        """Every class that names a `folder`."""
        for module, tree in self.graph.trees.items():
            constants = dict(_texts(tree.body))
            for node in _classes(tree):
                folder = dict(_texts(node.body, constants)).get("folder")
                if folder:
                    yield Base(module, node.name, folder)

    def _concrete(self, folder: str) -> Iterator[Concrete]:
        """Those of a folder's modules, and of what its packages hand on."""
        trees = self.graph.trees
        homes = self.graph.inside(folder)
        for package in trees:
            if package.rpartition(".")[0] == folder and self.graph.facade(package):
                body = trees[package].body
                froms = [node.module for node in body if isinstance(node, ast.ImportFrom)]
                homes += [home for home in map(str, froms) if home.startswith(f"{package}.")]
        for module in homes:
            for node in _classes(trees[module]):
                kind = _kind(node)
                if kind is not None:
                    yield Concrete(module, node.name, kind)

    def _fields(self, module: str) -> Iterator[Field]:
        nodes = self.graph.nodes[module]
        known = {(base.module, base.name): base for base in self.bases}
        here = {base.name: base for base in self.bases if base.module == module}
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module in self.graph.trees:
                for alias in node.names:
                    base = known.get((self.graph.home(node.module, alias.name), alias.name))
                    if base is not None:
                        here[alias.asname or alias.name] = base
        for node in nodes:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                for part in ast.walk(node.annotation):
                    if isinstance(part, ast.Subscript) and ast.unparse(part.value) == "Choice":
                        base = here.get(ast.unparse(part.slice))
                        if base is not None:
                            yield Field(module, node.target.id, base, _default(node.value))


def _default(value: ast.expr | None) -> str:
    if isinstance(value, ast.Call) and value.args:
        value = value.args[0]
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in tree.body if isinstance(node, ast.ClassDef))


def _texts(
    body: list[ast.stmt], constants: dict[str, str] | None = None
) -> Iterator[tuple[str, str]]:
    """Names given a text, or a constant that is one."""
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        text = getattr(value, "value", None)
        if isinstance(value, ast.Name):
            text = (constants or {}).get(value.id)
        if isinstance(targets[0], ast.Name) and isinstance(text, str):
            yield targets[0].id, text


def _kind(node: ast.ClassDef) -> str | None:
    """The kind of a policy class: the one word of `kind: Literal["…"]`."""
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == "kind":
            words = [
                part.value
                for part in ast.walk(statement.annotation)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            return words[0] if words else None
    return None
