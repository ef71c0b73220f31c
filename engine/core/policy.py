"""Policies: configs that decide something, found by their folder and told apart by their `kind`.

What was renamed goes by `Config.aliases` and `Policy.formerly`, so that saved runs, addresses and
scripts of before go on opening.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator


class Config(BaseModel):
    """A frozen value with every field bounded and described. Unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    aliases: ClassVar[Mapping[str, str]] = {}  # names of knobs before -> their names now
    gone: ClassVar[tuple[str, ...]] = ()  # knobs of before that mean nothing now

    @model_validator(mode="before")
    @classmethod
    def _by_names_of_now(cls, fields: Any) -> Any:
        if not (cls.aliases or cls.gone) or not isinstance(fields, Mapping):
            return fields
        known = {name: value for name, value in fields.items() if name not in cls.gone}
        return {cls.aliases.get(name, name): value for name, value in known.items()}


class Policy(Config):
    """A Config that also decides something; concrete ones set `kind` and live in `folder`."""

    folder: ClassVar[str] = ""  # dotted package or module that holds the concrete policies
    formerly: ClassVar[tuple[str, ...]] = ()  # kinds of this very policy before
    kind: str


def kinds(base: type[Policy]) -> dict[str, type[Policy]]:
    """The concrete policies in `base`'s folder by their kind, found by file name."""
    _import_all(base.folder)
    found = {}
    for policy in _descendants(base):
        kind = policy.model_fields["kind"].default
        if isinstance(kind, str) and not inspect.isabstract(policy):
            found[kind] = policy
    return dict(sorted(found.items()))


@cache
def _import_all(folder: str) -> None:
    """Import a module, or every module of a package, once: a knob turned looks here many times."""
    package = importlib.import_module(folder)
    for module in sorted(m.name for m in pkgutil.iter_modules(getattr(package, "__path__", ()))):
        importlib.import_module(f"{folder}.{module}")


def of_kind(base: type[Policy], kind: str) -> type[Policy] | None:
    """The policy of that kind, or of a kind that it had before; None where there is none."""
    known = kinds(base)
    before = {old: policy for policy in known.values() for old in vars(policy).get("formerly", ())}
    return known.get(kind) or before.get(kind)


def _descendants(base: type[Policy]) -> Iterator[type[Policy]]:
    for child in base.__subclasses__():
        yield child
        yield from _descendants(child)
