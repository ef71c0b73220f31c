"""A word index of all that the app says outside of its catalogue: knobs, views, and what studies
say of themselves; each entry knows the systems where its words stand.

To make it imports every built study, some seconds the first time: `reading` does so beside.
"""

import difflib
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from engine.core.config import knobs
from widgets.knobs.controls import label
from widgets.view import view
from workbench.catalogue import catalogue, study
from workbench.vocabulary import plain

NEAR = 0.78  # how alike two words are that may be one, as `difflib` counts


@dataclass(frozen=True, slots=True)
class Place:
    """Where words stand. `kind`: "knob", "view" or "about"; `name`: what a page calls it; `at`: the
    knob's path or the view's name; `words`: the text; `systems`: slugs, in the catalogue's order.
    """

    kind: str
    name: str
    at: str
    words: str
    systems: tuple[str, ...]


@cache
def places() -> tuple[Place, ...]:
    """Every knob and view of the built studies, and what each says of itself and its limits."""
    systems: dict[tuple[str, str, str, str], list[str]] = {}
    for slug in (entry.slug for entry in catalogue() if entry.built):
        for key in dict.fromkeys(_of_study(slug)):
            systems.setdefault(key, []).append(slug)
    return tuple(Place(*key, tuple(slugs)) for key, slugs in systems.items())


def _of_study(slug: str) -> Iterator[tuple[str, str, str, str]]:
    of = study(slug)
    for knob in knobs(of.config):
        yield "knob", label(knob), knob.path, " ".join([f"{knob.doc}.", *knob.choices])
    for name in of.views:
        one = view(name)
        yield "view", one.question, name, " ".join(words for _, words in one.explain)
    title = next(entry.title for entry in catalogue() if entry.slug == slug)
    yield "about", title, "", f"{of.about} {of.limits}"


@cache
def reading() -> threading.Thread:
    """The thread that makes the index, begun with the first call; until it is over `places` would
    make a caller wait."""
    thread = threading.Thread(target=places, daemon=True, name="word index")
    thread.start()
    return thread


def found(text: str, among: Iterable[Place] | None = None) -> list[Place]:
    """Where all words of `text` begin a word: those first whose name has them, then those of most
    systems."""
    words = [re.compile(rf"(?<!\w){re.escape(word)}") for word in plain(text).split()]
    if not words:
        return []

    def has(said: str) -> bool:
        return all(word.search(said) for word in words)

    ranked = []
    for place in places() if among is None else among:
        name = plain(f"{place.name} {place.at.replace('.', ' ')}")
        if has(f"{name} {plain(place.words)}"):
            ranked.append((not has(name), -len(place.systems), place))
    return [place for *_, place in sorted(ranked, key=lambda row: row[:2])]


@cache
def _said_by() -> dict[str, Counter[str]]:
    """word -> how many systems of each family say it."""
    said: dict[str, Counter[str]] = {}
    for entry in catalogue():
        text = plain(f"{entry.family} {entry.title} {entry.paper} {entry.about} {entry.claim}")
        for word in set(re.findall(r"\w{3,}", text)):
            said.setdefault(word, Counter())[entry.family] += 1
    return said


def nearest_family(text: str) -> str:
    """The family most of whose systems say these words, or words spelled nearly so; a word that all
    families have counts for little. "" where none has any."""
    score: dict[str, float] = {}
    size = Counter(entry.family for entry in catalogue())
    for word in plain(text).split():
        close = difflib.get_close_matches(word, _said_by(), 1, NEAR)
        for near in close:
            of = _said_by()[near]
            shares = {family: count / size[family] for family, count in of.items()}
            for family, share in shares.items():
                score[family] = score.get(family, 0.0) + share / sum(shares.values())
    return max(score, key=lambda family: score[family]) if score else ""
