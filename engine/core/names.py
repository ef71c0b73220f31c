"""What to answer to a name that is not known: the nearest ones there are, not all of them."""

import difflib
from collections.abc import Iterable

FEW = 8  # names that are still read as a list
SHOWN = 6  # of a longer list where nothing is near
NEAR = 3


def counted(number: int, noun: str, nouns: str = "") -> str:
    """A number with its noun: "1 system", "1,204 systems"; `nouns` where it takes no s alone."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about `name`: "did you mean a or b?", and all of `known` where few."""
    names = list(dict.fromkeys(known))
    near = nearest(name, names)
    asked = f"did you mean {_either(near)}?" if near else ""
    if not names:
        return "there are none"
    if len(names) <= FEW:
        listed = f"one of: {', '.join(names)}"
        return f"{asked} ({listed})" if asked and len(names) > len(near) else asked or listed
    return asked or f"among {len(names)}: {', '.join(names[:SHOWN])} …"


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of `known` near to `name`, nearest first.

    Letters' case may differ, and so may a dotted path's parents.
    """
    wanted, by_lower = name.lower()[:80], {each.lower(): each for each in known}
    if not wanted:
        return []
    parent, dot, tail = wanted.rpartition(".")
    beside = [each for each in by_lower if dot and each.rpartition(".")[0] == parent]
    if beside:  # a right parent would make all its knobs look near
        tails = {each.rpartition(".")[2]: each for each in beside}
        return [by_lower[tails[each]] for each in difflib.get_close_matches(tail, tails, NEAR)]
    close = difflib.get_close_matches(wanted, by_lower, NEAR)
    by_tail = {each.rpartition(".")[2]: each for each in reversed(by_lower)}
    close += [by_tail[each] for each in difflib.get_close_matches(tail, by_tail, 1, 0.8)]
    close += [each for each in by_lower if len(wanted) > 2 and wanted in each]
    return [by_lower[each] for each in list(dict.fromkeys(close))[:NEAR]]


def _either(names: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
