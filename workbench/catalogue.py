"""The catalogue: every system the workbench is about, joined with the studies that exist.

Rows come from `datasets/papers.toml`; a row is built when a file named for its slug lies in
`workbench/studies/<family>/`. Listing reads no study; only `study(slug)` imports one.
"""

import importlib
import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.names import nearest, suggest
from engine.core.paths import dataset
from workbench.study import Study
from workbench.vocabulary import plain, vocabulary


@dataclass(frozen=True)
class Entry:
    """One system: its name, its paper, what runs, the claim that must hold, and whether it is here.

    `module` is the dotted name of its study, "" where it is not built yet; `arxiv` is "" where our
    sources do not state it.
    """

    slug: str
    title: str
    family: str
    paper: str
    about: str
    claim: str
    arxiv: str = ""
    module: str = ""

    @property
    def built(self) -> bool:
        return bool(self.module)

    def row(self) -> dict[str, Any]:
        """What `workbench catalogue --json` prints of it."""
        plain = asdict(self)
        del plain["module"]
        return {**plain, "built": self.built}


def study_files(folder: Path | None = None) -> dict[str, str]:
    """slug -> dotted module name of every study file."""
    root = folder or Path(__file__).parent / "studies"
    files = sorted(p for p in root.glob("*/*.py") if not p.name.startswith("_"))
    return {
        path.stem.replace("_", "-"): f"workbench.studies.{path.parent.name}.{path.stem}"
        for path in files
    }


@cache
def catalogue() -> tuple[Entry, ...]:
    """Every system, in the catalogue's order."""
    with dataset("papers.toml").open("rb") as file:
        facts = tomllib.load(file)
    built = study_files()
    return tuple(
        Entry(slug=slug, module=built.get(slug, ""), **fields) for slug, fields in facts.items()
    )


def families() -> tuple[str, ...]:
    """The families' names, in the catalogue's order."""
    return tuple(dict.fromkeys(entry.family for entry in catalogue()))


def search(text: str = "", family: str = "", built: bool | None = None) -> list[Entry]:
    """Entries that `text` names, describes or says in words of other tools, in this order.

    An entry is found where every word of `text` occurs in it; a word of the vocabulary occurs in
    its systems, too. An arXiv identifier is a word.
    """
    found = []
    for entry in catalogue():
        if (family and entry.family != family) or (built is not None and entry.built != built):
            continue
        place = _place(entry, text.lower())
        if place is not None:
            found.append((place, entry))
    return [entry for _, entry in sorted(found, key=lambda pair: pair[0])]


def _place(entry: Entry, text: str) -> float | None:
    """How far down a search for `text` the entry stands; None where it is not found."""
    words = text.split()
    name = f"{entry.slug} {entry.title} {entry.arxiv}".lower()
    if all(word in name for word in words):
        return 0.0
    whole = f"{name} {entry.family} {entry.paper} {entry.about} {entry.claim}".lower()
    for word in vocabulary():
        rest = word.rest(plain(text)) if entry.slug in word.systems else None
        if rest is not None and all(other in whole for other in rest.split()):
            return 1.0 + word.systems.index(entry.slug) / len(word.systems)
    return 2.0 if all(word in whole for word in words) else None


def entry(slug: str) -> Entry:
    """The catalogue's row of that slug. Raises BadInput with the nearest slugs there are."""
    rows = {entry.slug: entry for entry in catalogue()}
    if slug in rows:
        return rows[slug]
    near = nearest(slug, rows)
    hint = suggest(slug, rows) if near else "see `workbench catalogue`"
    raise BadInput(f"study {slug!r}: no such system; {hint}")


def study(slug: str) -> Study:
    """The study of that slug. Raises BadInput where there is none, or none yet."""
    found = entry(slug)
    if not found.built:
        raise BadInput(
            f"study {slug!r} ({found.title}): not built yet; "
            "`workbench catalogue --built` lists those that are"
        )
    return importlib.import_module(found.module).STUDY
