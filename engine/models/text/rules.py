"""The rules of a tokenizer from outside, with what could hang or abort the process taken away.

Padding and truncation are dropped: we batch without either, and a padding to 10⁹ tokens ends the
process. Replacements that multiply a text and patterns that try exponentially many ways are
refused.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Rules

from engine.core.errors import BadInput
from engine.core.limits import read_bytes

GROWTH = 64  # times that all replacements together may lengthen a text; public ones stay under 4
PATTERN = 20_000  # characters of a pattern
WORD = 10_000  # characters of a word looked up whole; the library tries all its ends
PARTS = ("normalizer", "pre_tokenizer", "decoder")
REPEATS = re.compile(r"[*+]|\{\d*,\}|\{\d{3,}(,\d*)?\}|\{\d*,\d{3,}\}")  # without a near end


def read_rules(file: Path) -> Rules:
    """The rules in a `tokenizer.json`. Raises BadInput naming the file."""
    try:
        rules = Rules.from_buffer(read_bytes(file, "tokenizer_bytes"))
    except (KeyboardInterrupt, SystemExit, BadInput):
        raise
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror}); check the file") from None
    except BaseException as error:  # the library raises bare Exception, and panics beside it
        raise BadInput(f"{file}: not a tokenizer ({str(error)[:100]}); restore it") from None
    rules.no_padding()
    rules.no_truncation()
    for name in PARTS:
        _check(file, name, getattr(rules, name))
    if getattr(rules.model, "max_input_chars_per_word", 0) > WORD:
        raise BadInput(f"{file}: model looks up words of over {WORD} characters; restore it")
    return rules


def _check(file: Path, name: str, part: Any) -> None:
    """Raises BadInput where a part's rules may cost too much."""
    if part is None:
        return
    growth = 1.0
    for rule in _rules(json.loads(part.__getstate__())):
        pattern = rule.get("pattern")
        told = pattern if isinstance(pattern, dict) else {}
        regex, literal = told.get("Regex"), told.get("String")
        if rule.get("type") == "Replace":
            growth *= max(1.0, len(str(rule.get("content", ""))) / max(1, len(literal or "")))
            if growth > GROWTH:
                raise BadInput(f"{file}: {name} makes a text over {GROWTH} times as long; refused")
        if isinstance(regex, str) and tries_many_ways(regex):
            raise BadInput(
                f"{file}: {name} has a pattern that may try too many ways ({regex[:40]!r}); refused"
            )


def _rules(state: Any) -> Iterator[dict[str, Any]]:
    """Every rule in a part, those inside sequences too."""
    if isinstance(state, dict):
        if "type" in state:
            yield state
        for value in state.values():
            if isinstance(value, list | dict):
                yield from _rules(value)
    elif isinstance(state, list):
        for value in state:
            yield from _rules(value)


def tries_many_ways(pattern: str) -> bool:
    """Whether a repeated group holds a repetition or a choice: exponentially many ways to match.

    Errs on the side of yes; no public tokenizer's pattern is one.
    """
    if len(pattern) > PATTERN:
        return True
    groups: list[bool] = []  # for each open group: whether it holds a repetition or a choice
    at, inside_class = 0, False
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\":
            at += 2
            continue
        if inside_class:
            inside_class = letter != "]"
        elif letter == "[":
            inside_class = True
            at += pattern[at + 1 : at + 2] == "^"
            at += pattern[at + 1 : at + 2] == "]"
        elif letter == "(":
            groups.append(False)
        elif letter == "|" and groups:
            groups[-1] = True
        elif letter == ")" and groups:
            held = groups.pop()
            repeated = REPEATS.match(pattern, at + 1) is not None
            if repeated and held:
                return True
            if groups:
                groups[-1] |= held or repeated
        elif groups and REPEATS.match(pattern, at):
            groups[-1] = True
        at += 1
    return False
