"""A canvas hears a browser: what our scripts send of a message is taken, and the rest left out.

A notebook's comm or a page's websocket brings any JSON; a window that makes no sense, once kept,
would fail every later picture.
"""

import math
from typing import Any

NAMES = 32  # in one window
WORDS, WORD = ("axis",), 64  # of a window that are no numbers; characters of one
TEXT = 4096  # characters of an owner's name
LARGEST = 1e15  # of a window's numbers: a float64 still tells such lanes apart
ENDS = (("start", "stop"), ("first", "last"))  # that go together
OURS = "static"  # no browser's word: a page without a server is sent ten times as much


def window(said: Any) -> dict[str, Any]:
    """The ranges, numbers and words of a window; {} where there are none."""
    if not isinstance(said, dict) or len(said) > NAMES:
        return {}
    kept = {k: v for k, v in said.items() if k != OURS and _plain(k, v)}
    halves = {
        end for ends in ENDS if not all(_is_number(kept.get(e)) for e in ends) for end in ends
    }
    return {k: v for k, v in kept.items() if k not in halves}


def moment(said: Any) -> float:
    """Seconds from 0; -1 where it is none."""
    return float(said) if _is_number(said) and said >= 0 else -1.0


def owner(said: Any) -> str:
    """An owner's name; "" where it is none."""
    return said if isinstance(said, str) and len(said) <= TEXT else ""


def command(said: Any) -> dict[str, Any]:
    """What a person tells the run, without the number by which it is told twice."""
    if not isinstance(said, dict):
        return {}
    return {k: v for k, v in said.items() if isinstance(k, str) and k != "turn"}


def _plain(name: Any, value: Any) -> bool:
    if name in WORDS:
        return isinstance(value, str) and len(value) <= WORD
    return isinstance(name, str) and (isinstance(value, bool) or _is_number(value))


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= LARGEST and (isinstance(value, int) or math.isfinite(value))
