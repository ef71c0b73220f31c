"""What a system costs: engine modules, and their lines, that one study alone reaches.

`python -m tests.architecture.prices [CHECKOUT]` prints the table; `--lower` writes lower prices to
`prices.toml` (never higher ones). A study reaches what its file imports (its `_` helpers too),
lazily or at once, and of what is found by folder the policies that it or a default names by kind,
and the variants of every operator it comes to. Packages' `__init__` files are not counted, nor is
the recipe of a model it ships with.
"""

import argparse
import ast
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.architecture.graph import Graph, graph, reach
from tests.architecture.policies import Policies
from tests.architecture.sources import ROOT

FILES, LINES = 3, 400  # of engine, that a system may cost without a reason
HALF_FILES, HALF_LINES = 4, 350  # that half of the systems cost at most
STEP = 50  # lines to which listed prices are rounded up
LISTED = Path(__file__).with_name("prices.toml")
RECIPES = "engine.recipes."
FOUND_BY_NAME = ("VARIANT", "BACKEND")  # what a module of an operator's package is found by


@dataclass(frozen=True)
class Price:
    """What one study alone reaches of the engine, and how long its own files are."""

    slug: str
    modules: tuple[str, ...]
    lines: int
    own: int

    @property
    def files(self) -> int:
        return len(self.modules)


def studies(graph: Graph) -> dict[str, str]:
    """slug -> module of every study."""
    names = (m for m in graph.trees if m.startswith("workbench.studies.") and m.count(".") == 3)
    last = {name: name.rpartition(".")[2] for name in names}
    return {w.replace("_", "-"): m for m, w in last.items() if not w.startswith("_")}


def prices(graph: Graph) -> list[Price]:
    """Each study's price, the dearest first."""
    reaching = Reaching(graph)
    reached = {slug: reaching.of(module) for slug, module in studies(graph).items()}
    counts = Counter(module for modules in reached.values() for module in modules)
    found = []
    for slug, modules in reached.items():
        alone = sorted(m for m in modules if counts[m] == 1 and not graph.facade(m))
        engine = tuple(m for m in alone if m.startswith("engine.") and not m.startswith(RECIPES))
        own = sum(graph.lines(m) for m in alone if m.startswith("workbench.studies."))
        found.append(Price(slug, engine, sum(map(graph.lines, engine)), own))
    return sorted(found, key=lambda price: (-price.files, -price.lines, price.slug))


class Reaching:
    """What a study comes to in a checkout."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.policies = graph, Policies(graph)
        self.edges = {
            m: targets | self._variants(m)
            for m, targets in graph.imports.items()
            if not m.startswith(RECIPES)
        }

    def of(self, study: str) -> set[str]:
        """Every module that a study comes to, packages' `__init__` among them."""
        reached = reach([study], self.edges)
        while not (more := self._chosen(reached)) <= reached:
            reached = reach(reached | more, self.edges)
        return reached

    def _chosen(self, reached: set[str]) -> set[str]:
        """Policies that the study's own files name, or the default of a field they come to.

        A policy is named where both a field it can be chosen for and its kind are texts or names
        in the study's files.
        """
        named = self._words([m for m in reached if m.startswith("workbench.studies.")])
        return {
            policy.module
            for field in self.policies.fields
            if field.module in reached
            for policy in self.policies.concrete[field.base]
            if policy.kind == field.default or {field.name, policy.kind} <= named
        }

    def _words(self, modules: list[str]) -> set[str]:
        """Texts, last words of dotted texts, and keywords in those modules."""
        found = set()
        for module in modules:
            for node in self.graph.nodes[module]:
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found |= {node.value, node.value.rpartition(".")[2]}
                elif isinstance(node, ast.keyword) and node.arg:
                    found.add(node.arg)
        return found

    def _variants(self, module: str) -> set[str]:
        """What is found by file in an operator's package, or beside a module that finds it so."""
        folder = module
        if not assigns(self.graph.trees[module], ("OPERATOR",)):
            folder = f"{module.rpartition('.')[0]}.backends"
        inside = self.graph.inside(folder) if folder in self.graph.trees else []
        return {m for m in inside if assigns(self.graph.trees[m], FOUND_BY_NAME)}


def assigns(tree: ast.Module, names: tuple[str, ...]) -> bool:
    targets = (t for node in tree.body if isinstance(node, ast.Assign) for t in node.targets)
    return any(isinstance(t, ast.Name) and t.id in names for t in targets)


def listed() -> dict[str, dict[str, int | str]]:
    """Prices above the usual, with their reasons, as `prices.toml` has them."""
    return tomllib.loads(LISTED.read_text())


def dear(price: Price) -> bool:
    return price.files > FILES or price.lines > LINES


def rounded(lines: int) -> int:
    return -(-lines // STEP) * STEP


def lowered(found: list[Price]) -> str:
    """`prices.toml` with every listed price that has fallen, and without those that are usual."""
    parts = [LISTED.read_text().partition("[")[0].rstrip()]
    for price in found:
        row = listed().get(price.slug)
        if row is not None and dear(price):
            files = min(int(row["files"]), price.files)
            lines = min(int(row["lines"]), rounded(price.lines))
            parts.append(
                f'[{price.slug}]\nfiles = {files}\nlines = {lines}\nreason = "{row["reason"]}"'
            )
    return "\n\n".join(parts) + "\n"


def table(found: list[Price]) -> str:
    rows = [f"{'study':28} {'engine files':>12} {'lines':>6} {'its own lines':>14}"]
    rows += [f"{p.slug:28} {p.files:12} {p.lines:6} {p.own:14}" for p in found]
    files, lines, own = (median(getattr(p, of) for p in found) for of in ("files", "lines", "own"))
    return "\n".join([*rows, f"{'median':28} {files:12g} {lines:6g} {own:14g}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--modules", action="store_true", help="name each module too")
    parser.add_argument("--lower", action="store_true", help="lower what prices.toml lists")
    args = parser.parse_args()
    found = prices(graph(args.checkout.resolve()))
    print(table(found))
    if args.modules:
        for price in found:
            print("\n".join([f"\n{price.slug}", *(f"  {m}" for m in price.modules)]))
    if args.lower:
        LISTED.write_text(lowered(found))


if __name__ == "__main__":
    main()
