"""Fields of a `config.json`, each checked as it is read: a wrong one is one line naming it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from engine.core.errors import BadInput
from engine.core.limits import check, inside, parse_json, read_bytes

Word = TypeVar("Word", bound=str)
LARGEST_COUNT = 1 << 24
LEAST = 2.0**-126  # of numbers but 0: float32 loses smaller ones
MOST_LAYERS = 1 << 14
MOST_EXPERTS = 1 << 16  # of a layer


class Fields:
    """A JSON object with the name of where it came from."""

    def __init__(self, raw: dict[str, Any], where: str) -> None:
        self.raw = raw
        self.where = where

    def bad(self, name: str, message: str) -> BadInput:
        """The error for field `name`."""
        return BadInput(f"{self.where}: field {name!r} {message}")

    def has(self, name: str) -> bool:
        """Whether the field is present and not null."""
        return self.raw.get(name) is not None

    def count(
        self, name: str, default: int | None = None, low: int = 1, high: int = LARGEST_COUNT
    ) -> int:
        """A whole number from `low` up to `high`."""
        value = self.raw.get(name)
        value = default if value is None else value
        if value is None:
            raise self.bad(name, "is missing; a checkpoint of this architecture must state it")
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.bad(name, f"must be a whole number, not {_short(value)}")
        if not low <= value <= high:
            bounds = f"between {low} and {high}"
            raise self.bad(name, f"is {_short(value)}; it must lie {bounds}")
        return value

    def number(self, name: str, default: float | None = None, low: float = 0.0) -> float:
        """A finite number above `low` (and `low` itself where that is 0 by default)."""
        value = self.raw.get(name)
        value = default if value is None else value
        if value is None:
            raise self.bad(name, "is missing; a checkpoint of this architecture must state it")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.bad(name, f"must be a number, not {_short(value)}")
        if not low <= value <= 1e12 or 0 < value < LEAST:  # NaN is not, either
            least = f"between {low} and 1e12, not within {LEAST:.2g} of 0"
            raise self.bad(name, f"is {_short(value)}; it must lie {least}")
        return float(value)

    def numbers(self, name: str, count: int, low: float = 1e-6) -> tuple[float, ...]:
        """A list of `count` finite numbers, none below `low`."""
        value = self.raw.get(name)
        if not isinstance(value, list) or len(value) != count:
            raise self.bad(name, f"must be a list of {count} numbers, not {_short(value)}")
        held = Fields({f"{name}[{at}]": each for at, each in enumerate(value)}, self.where)
        return tuple(held.number(each, low=low) for each in held.raw)

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self.raw.get(name)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self.bad(name, f"must be true or false, not {_short(value)}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """A string."""
        value = self.raw.get(name)
        value = default if value is None else value
        if value is None:
            raise self.bad(name, "is missing; a checkpoint of this architecture must state it")
        if not isinstance(value, str):
            raise self.bad(name, f"must be a string, not {_short(value)}")
        return value

    def choice(self, name: str, default: str, allowed: Mapping[str, Word]) -> Word:
        """One of the keys of `allowed`, translated to our word for it."""
        value = self.text(name, default)
        if value not in allowed:
            raise self.bad(name, f"is {_short(value)}; supported are {', '.join(sorted(allowed))}")
        return allowed[value]

    def tokens(self, name: str) -> tuple[int, ...]:
        """A token id or a list of them; absent gives none."""
        value = self.raw.get(name)
        ids = value if isinstance(value, list) else [] if value is None else [value]
        if len(ids) > 64 or any(type(i) is not int or i < 0 for i in ids):
            raise self.bad(name, f"must be a token id or a short list of them, not {_short(value)}")
        return tuple(ids)

    def inner(self, name: str) -> "Fields | None":
        """A nested object, or None where absent."""
        value = self.raw.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.bad(name, f"must be an object, not {_short(value)}")
        return Fields(value, f"{self.where}: {name}")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a model folder. Raises BadInput where there is none."""
    try:
        data = read_bytes(inside(path.parent, path.name), "config_bytes")
        check(path, "values", sum(map(data.count, (b",", b"[", b"{"))), "config_entries")
        value = parse_json(data, path)
    except BadInput:
        raise
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; give a Hugging Face model folder") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: not readable as JSON ({_short(error, str)}); restore it") from None
    if not isinstance(value, dict):
        raise BadInput(f"{path}: holds a JSON {type(value).__name__}, not an object; restore it")
    return value


def _short(value: object, form: Any = repr) -> str:
    text = form(value)
    return text if len(text) <= 60 else text[:57] + "..."
