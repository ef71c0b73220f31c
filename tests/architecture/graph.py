"""The import graph of a checkout's packages: every import counted, wherever in a file it stands.

An import of a name through a package's `__init__` leads to the module that the `__init__` takes it
from. Circles are strongly connected components of the graph, so none is missed.
"""

import ast
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

from tests.architecture.sources import ROOT, parsed

Node = TypeVar("Node", bound=Hashable)
TELLING = (ast.Import, ast.ImportFrom, ast.Constant, ast.AnnAssign, ast.keyword)


class Graph:
    """Modules of a checkout and what each imports: lazily, for types only, or at once."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.trees = parsed(root)
        self.nodes = {  # of each module those that say what it uses: trees are walked once
            module: [node for node in ast.walk(tree) if isinstance(node, TELLING)]
            for module, tree in self.trees.items()
        }

    def file(self, module: str) -> Path:
        path = self.root / Path(*module.split("."))
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def facade(self, module: str) -> bool:
        """Whether it is a package's `__init__`, which re-exports and does nothing itself."""
        return self.file(module).name == "__init__.py"

    def inside(self, folder: str) -> list[str]:
        """The modules directly in a package; the module itself where `folder` is one."""
        if folder in self.trees and not self.facade(folder):
            return [folder]
        return [m for m in self.trees if m.rpartition(".")[0] == folder and not self.facade(m)]

    def lines(self, module: str) -> int:
        return len(self.file(module).read_text().splitlines())

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """module -> the modules of ours that it imports, itself and its own packages left out."""
        return {
            module: {t for t in self._targets(nodes) if t != module}
            for module, nodes in self.nodes.items()
        }

    def _targets(self, nodes: list[ast.AST]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.trees)
            elif isinstance(node, ast.ImportFrom) and node.module in self.trees:
                yield from (self.home(node.module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                # Work that is sent to another process by name: "engine.training.work:work".
                name = node.value.partition(":")[0]
                if "." in name and name in self.trees and not self.facade(name):
                    yield name

    def home(self, module: str, name: str) -> str:
        """The module that `from module import name` ends at."""
        inner = f"{module}.{name}"
        if inner in self.trees:
            return inner
        if self.facade(module):
            for node in self.trees[module].body:
                if isinstance(node, ast.ImportFrom) and node.module in self.trees:
                    for alias in node.names:
                        if (alias.asname or alias.name) == name:
                            return self.home(node.module, alias.name)
        return module

    def between_modules(self) -> dict[str, set[str]]:
        """The graph without facades."""
        return {
            module: {t for t in targets if not self.facade(t)}
            for module, targets in self.imports.items()
            if not self.facade(module)
        }

    def between_packages(self, depth: int = 3) -> dict[str, set[str]]:
        """The graph of folders, named by their first `depth` words, without facades."""
        graph: dict[str, set[str]] = {}
        for module, targets in self.between_modules().items():
            here = _package(module, depth)
            there = {_package(target, depth) for target in targets} - {here}
            graph.setdefault(here, set()).update(there)
        return graph


@cache
def graph(root: Path = ROOT) -> Graph:
    return Graph(root)


def _package(module: str, depth: int) -> str:
    return ".".join(module.split(".")[:-1][:depth])


def reach(starts: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    """Everything that can be come to from `starts`, themselves included."""
    reached, left = set(), list(starts)
    while left:
        node = left.pop()
        if node not in reached:
            reached.add(node)
            left += edges.get(node, ())
    return reached


def circles(edges: Mapping[Node, set[Node]]) -> list[tuple[Node, ...]]:
    """Strongly connected components of more than one node, sorted (Tarjan, without recursion)."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    found = []
    for start in edges:
        work = [(start, iter(sorted(edges[start])))] if start not in index else []
        while work:
            node, targets = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            for target in targets:
                if target not in index:
                    work.append((target, iter(sorted(edges.get(target, ())))))
                    break
                if target in stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    if len(stack) - at > 1:
                        found.append(tuple(sorted(stack[at:])))
                    del stack[at:]
    return sorted(found)
