"""Addresses that carry every knob: a query of dotted paths, and back."""

from collections.abc import Iterable, Mapping

from engine.core.config import Config, update
from engine.core.errors import BadInput
from widgets.knobs.config_text import changes, spelled

# Of the page, not of the study.
OWN = ("slug", "seed", "theme", "file", "name", "preset", "frame", "paused", "at", "pin",
       "claim", "knob", "view")  # fmt: skip
MOST = 64  # knobs in one address


def query_of(start: Config, config: Config) -> dict[str, str]:
    """What must be set on `start` to get `config`, as text by dotted path; lists are left out."""
    differing = changes(config, start).items()
    return {path: spelled(v) for path, v in differing if not isinstance(v, list | None)}


def config_of(start: Config, query: Mapping[str, str] | Iterable[tuple[str, str]]) -> Config:
    """`start` with the knobs of an address set. Raises BadInput for one that does not fit."""
    wanted = {path: value for path, value in dict(query).items() if path not in OWN}
    if len(wanted) > MOST:
        raise BadInput(f"address: {len(wanted)} knobs; at most {MOST}")
    return update(start, wanted)
