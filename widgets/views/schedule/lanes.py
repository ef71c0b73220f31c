"""The order of lanes, and the number in a name."""

import re
from collections.abc import Iterable

TRAILING = re.compile(r"\d+$")


LINK = "link "  # begins the lane of what travels, as against those of who works


def is_link(name: str) -> bool:
    """Whether a lane is a link's: it carries messages, and is not idle where it carries none."""
    return name.startswith(LINK)


def number(name: str) -> int:
    """The number a name ends in; -1 where it ends in none."""
    found = TRAILING.search(name)
    return int(found.group()[-9:]) if found else -1


def in_order(names: Iterable[str], given: bool = False) -> list[int]:
    """Places of `names` in the order to show them: as they came, those that differ only in their
    number by that number. `given`: as they came throughout."""
    listed = list(names)
    if given:
        return list(range(len(listed)))
    families: dict[str, int] = {}
    keys = []
    for place, name in enumerate(listed):
        family = families.setdefault(TRAILING.sub("", name), len(families))
        keys.append((family, number(name), place))
    return [place for _, _, place in sorted(keys)]
