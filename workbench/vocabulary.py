"""The vocabulary: what people who come from other tools call things, and what that is called here.

Rows come from `datasets/vocabulary.toml`; the catalogue's search reads them.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache

from engine.core.paths import dataset


@dataclass(frozen=True, slots=True)
class Word:
    """What people say for something, what it is called here, and the systems that are about it."""

    said: tuple[str, ...]
    here: str
    systems: tuple[str, ...]

    def found(self, text: str) -> re.Match[str] | None:
        """Where `text` (in lower case) says it, in the longest words; None where it does not."""
        longest = sorted(self.said, key=len, reverse=True)
        tried = (re.search(rf"(?<!\w){re.escape(said)}(?!\w)", text) for said in longest)
        return next(filter(None, tried), None)

    def rest(self, text: str) -> str | None:
        """`text` (in lower case) without what is said here; None where it says none of it."""
        found = self.found(text)
        return f"{text[: found.start()]} {text[found.end() :]}".strip() if found else None


@cache
def vocabulary() -> tuple[Word, ...]:
    """Words of people who come from other tools."""
    with dataset("vocabulary.toml").open("rb") as file:
        rows = tomllib.load(file)["word"]
    return tuple(Word(tuple(r["said"]), r["here"], tuple(r["systems"])) for r in rows)


def plain(text: str) -> str:
    """In lower case, without hyphens and underlines."""
    return " ".join(re.sub(r"[-_]", " ", text.lower()).split())


def words_of(text: str) -> list[tuple[str, Word]]:
    """The words of the vocabulary that `text` says, each with how it says them.

    The zero of "zero bubble" is none: it lies within longer words.
    """
    tried = [(word.found(plain(text)), word) for word in vocabulary()]
    found = [(at, word) for at, word in tried if at is not None]
    return [
        (at[0], word)
        for at, word in found
        if not any(
            other.start() <= at.start() and at.end() <= other.end() and len(other[0]) > len(at[0])
            for other, _ in found
        )
    ]
