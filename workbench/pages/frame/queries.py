"""An address's query as Panel reads it, for any text.

Panel takes what looks like a number for one, before our own code reads the address. Digits that are
none (a "²"), and numbers longer than Python reads, left the page unbuilt (panel 1.9.4,
`panel.util.parse_query`). They stay text.
"""

from typing import Any
from urllib.parse import parse_qsl

from panel.io import location

_read = location.parse_query


def read(query: str) -> dict[str, Any]:
    """The values of a query ("?a=1&b=c") by name."""
    try:
        return dict(_read(query))
    except ValueError:
        return dict(parse_qsl(query[1:]))


def read_any() -> None:
    """Have every page's address read so, from now on in this process."""
    location.parse_query = read
