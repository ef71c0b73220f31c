"""Rules that the tokenizers library fails at with a page on stderr, found before it meets them."""

import json
import re
import string
from pathlib import Path
from typing import Any

from tokenizers import Regex, normalizers

from engine.core.errors import BadInput
from engine.models.text.added import json_at

AFFIX = re.compile(rb'"continuing_subword_prefix"\s*:\s*("(?:[^"\\]|\\.)*")')
MERGES = re.compile(rb'"merges"\s*:\s*\[')
PROBES = ("", "ab", "a b", " a", "a ", "a\nb", "\n", "1a", "a1", ".a", "é", *string.printable)


def fatal(rule: dict[str, Any]) -> str | None:
    """What the library fails at in a rule on texts of some kind."""
    kind, told = rule.get("type"), rule.get("pattern")
    if kind == "Replace" and isinstance(told, dict):
        regex = told.get("Regex")
        if told.get("String") == "" or (regex is not None and _finds_nothing(rule, regex)):
            return "replaces what has no letters"
    if kind == "Strip" and (rule.get("stop") or 0) > 0:
        return "strips the ends of texts, which may be shorter"
    if kind == "TemplateProcessing" and "'id': 'B'" in str(rule.get("single")):
        return "puts a second text beside one"
    return None


def check_merges(file: Path, data: bytes) -> None:
    """Raises BadInput where a merge's second piece is none that goes on a word: the library cuts
    the mark of one off it unseen, and fails where it is longer."""
    for told in AFFIX.finditer(data):
        mark = json.loads(told[1])
        for place in MERGES.finditer(data) if mark else ():
            for merge in json_at(data, place.end() - 1):
                second = merge.rpartition(" ")[2] if isinstance(merge, str) else merge[-1]
                if not second.startswith(mark) or not mark.isascii():
                    raise BadInput(
                        f"{file}: merge {str(merge)[:60]!r} has a second piece that does not begin "
                        f"with continuing_subword_prefix {mark[:20]!r}; restore it"
                    )


def _finds_nothing(rule: dict[str, Any], regex: str) -> bool:
    """Whether the pattern matches between letters, and something is put there: what comes next
    counts letters that are not there. Each match that takes a letter takes one at least."""
    if not rule.get("content"):
        return False
    gone, marked = (normalizers.Replace(Regex(regex), to) for to in ("", "\0"))
    lengths = ((len(gone.normalize_str(t)), len(marked.normalize_str(t)), len(t)) for t in PROBES)
    return any(left - kept > size - kept for kept, left, size in lengths)
