"""Config: the frozen, validated value that a run is made from, and the knobs that change it.

A field made with `knob` carries bounds, unit and a one-line description; controls, command-line
flags, JSON schema and documentation all come from there. A choice between policies is a field of
type `Choice[Base]`: any concrete subclass of `Base` found in its policies folder, told apart by its
`kind`.
"""

import contextlib
import dataclasses
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import Field, GetCoreSchemaHandler, ValidationError
from pydantic_core import core_schema

from engine.core.errors import BadInput
from engine.core.names import suggest
from engine.core.policy import Config as Config
from engine.core.policy import Policy as Policy
from engine.core.policy import kinds as kinds
from engine.core.policy import of_kind

PolicyT = TypeVar("PolicyT", bound=Policy)


def knob(
    default: Any = ...,
    doc: str = "",
    *,
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
    group: str = "",
    log: bool = False,
    called: str = "",
    make: Any = None,
) -> Any:
    """A Config field: default (or `make`, a factory), bounds, unit, group and a one-line doc.

    `called`: its label where the field's name, which is short for command lines, is none.

    `group` names the fold of the control panel it belongs to ("" shows it at once); `log` asks for
    a logarithmic slider.
    """
    extra: dict[str, Any] = {"unit": unit, "group": group, "log": log, "called": called}
    start: dict[str, Any] = {"default_factory": make} if make is not None else {"default": default}
    return Field(**start, ge=low, le=high, description=doc, json_schema_extra=extra)


@dataclasses.dataclass(frozen=True)
class _ChoiceOf:
    """Validates a policy, its kind, or a mapping with a kind, into a policy of `base`."""

    base: type[Policy]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.read, serialization=core_schema.plain_serializer_function_ser_schema(to_dict)
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [policy.model_json_schema() for policy in kinds(self.base).values()]}

    def read(self, value: Any) -> Policy:
        if isinstance(value, self.base):
            return value
        fields = {"kind": value} if isinstance(value, str) else value
        if not isinstance(fields, Mapping) or not isinstance(fields.get("kind"), str):
            raise ValueError(f"give one of: {', '.join(kinds(self.base))}")
        policy = of_kind(self.base, fields["kind"])
        if policy is None:
            raise ValueError(
                f"no such kind {fields['kind']!r}; {suggest(fields['kind'], kinds(self.base))}"
            )
        return policy.model_validate({**fields, "kind": policy.model_fields["kind"].default})


if TYPE_CHECKING:
    Choice: TypeAlias = Annotated[PolicyT, "chosen by kind"]
else:

    class Choice:
        """`Choice[Base]` is the field type of a policy of `Base`, chosen by kind."""

        def __class_getitem__(cls, base: type[Policy]) -> Any:
            return Annotated[base, _ChoiceOf(base)]


@dataclasses.dataclass(frozen=True)
class Knob:
    """One thing a person can turn: a dotted path into a Config and what it may be set to."""

    path: str
    type: Literal["int", "float", "bool", "str", "choice"]
    value: Any
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    unit: str = ""
    group: str = ""
    log: bool = False
    called: str = ""


def knobs(config: Config, under: str = "") -> list[Knob]:
    """Every knob of `config` in field order; those of nested configs follow their parent."""
    found: list[Knob] = []
    for name, field in type(config).model_fields.items():
        if name == "kind" and isinstance(config, Policy):
            continue
        value, path = getattr(config, name), f"{under}{name}"
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        facts: dict[str, Any] = {"doc": field.description or "", **extra}
        for bound in field.metadata:
            if getattr(bound, "ge", None) is not None:
                facts["low"] = bound.ge
            if getattr(bound, "le", None) is not None:
                facts["high"] = bound.le
        chosen = next((m for m in field.metadata if isinstance(m, _ChoiceOf)), None)
        if chosen is not None:
            options = tuple(kinds(chosen.base))
            found.append(Knob(path, "choice", value.kind, choices=options, **facts))
        if isinstance(value, Config):
            found += knobs(value, f"{path}.")
        elif chosen is None:
            kind, options = _plain(field.annotation)
            if kind is not None:
                found.append(Knob(path, kind, value, choices=options, **facts))
    return found


def _plain(annotation: Any) -> tuple[Any, tuple[str, ...]]:
    """The knob type of a plain annotation; (None, ()) where a person cannot turn it."""
    if get_origin(annotation) is Literal:
        return "choice", tuple(str(option) for option in get_args(annotation))
    if get_origin(annotation) in (Union, UnionType):
        inner = [a for a in get_args(annotation) if a is not NoneType]
        return _plain(inner[0]) if len(inner) == 1 else (None, ())
    names = {int: "int", float: "float", bool: "bool", str: "str"}
    return names.get(annotation), ()


ConfigT = TypeVar("ConfigT", bound=Config)


def update(config: ConfigT, changes: Mapping[str, Any]) -> ConfigT:
    """A new `config` with dotted paths set, all of it validated again.

    Setting a choice to another kind starts that policy from its defaults. None stands for no value
    and, where a knob cannot go without one, for the word "none". Raises BadInput naming the first
    path or value that does not fit, and what would.
    """
    try:
        return _updated(config, changes)
    except BadInput:
        if None not in changes.values():
            raise
        said = {path: "none" if value is None else value for path, value in changes.items()}
        with contextlib.suppress(BadInput):
            return _updated(config, said)
        raise


def _updated(config: ConfigT, changes: Mapping[str, Any]) -> ConfigT:
    fields = to_dict(config)
    for depth in sorted({path.count(".") for path in changes}):
        for path in changes:
            if path.count(".") == depth:
                _assign(config, fields, path, changes[path])
        # A newly chosen policy's defaults have to be there before something inside it is set.
        with contextlib.suppress(BadInput):
            config = from_dict(type(config), fields)
            fields = to_dict(config)
    return from_dict(type(config), fields)


def renamed(config: Config, path: str) -> tuple[str, Any]:
    """A dotted path in the names that knobs have now, and what stands there (None: nothing)."""
    names: list[str] = []
    here: Any = config
    for name in path.split("."):
        names.append(here.aliases.get(name, name) if isinstance(here, Config) else name)
        here = vars(here).get(names[-1]) if isinstance(here, Config) else None
    return ".".join(names), here


def _assign(config: Config, fields: dict[str, Any], path: str, value: Any) -> None:
    if _gone(config, path):
        return
    path, standing = renamed(config, path)
    *parents, last = path.split(".")
    place: Any = fields
    for name in parents:
        place = place.get(name) if isinstance(place, dict) else None
        if isinstance(place, str):
            place = None
    if not isinstance(place, dict):
        raise BadInput(f"knob {path!r}: no such knob; {suggest(path, _names(config))}")
    # A policy just chosen holds its kind alone where its defaults are not a valid whole.
    if last not in place and (not parents or len(place) > 1):
        beside = [".".join([*parents, name]) for name in place if name != "kind"]
        names = beside if parents else _names(config)
        raise BadInput(f"knob {path!r}: no such knob; {suggest(path, names)}")
    current = place.get(last)
    if isinstance(current, dict) and "kind" in current and isinstance(value, str):
        same = value in (current["kind"], *vars(type(standing)).get("formerly", ()))
        value = current if same else {"kind": value}
    if isinstance(value, str) and "_" in value and _is_number(config, path):
        raise BadInput(f"knob {path!r}: {value!r} is no number; write it without underscores")
    place[last] = value


def _is_number(config: Config, path: str) -> bool:
    """Whether the knob is one. In texts Python reads `1_0` as 10, and who mistypes `1-0`, or means
    `1.0`, gets ten times as much."""
    return any(knob.path == path and knob.type in ("int", "float") for knob in knobs(config))


def _gone(config: Config, path: str) -> bool:
    """Whether the path names a knob of before that means nothing now, or one within it."""
    here: Any = config
    for name in path.split("."):
        if not isinstance(here, Config):
            return False
        if name in here.gone:
            return True
        here = vars(here).get(here.aliases.get(name, name))
    return False


def _names(config: Config) -> list[str]:
    return [knob.path for knob in knobs(config)]


def to_dict(config: Config) -> dict[str, Any]:
    """Plain values, policies with their kind; `from_dict` reads it back equal."""
    plain: dict[str, Any] = {}
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, Config):
            value = to_dict(value)
        elif isinstance(value, tuple):
            value = [to_dict(v) if isinstance(v, Config) else v for v in value]
        plain[name] = value
    return plain


def from_dict(kind: type[ConfigT], fields: Mapping[str, Any]) -> ConfigT:
    """A validated config from plain values. Raises BadInput with one line for the first fault."""
    try:
        return kind.model_validate(dict(fields))
    except ValidationError as fault:
        raise BadInput(_sentence(kind, fault)) from None


def _sentence(kind: type[Config], fault: ValidationError) -> str:
    first = fault.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        return f"knob {where!r}: no such knob; {suggest(where, kind.model_fields)}"
    given = first.get("input")
    shown = "" if isinstance(given, (dict, Config)) else f" (given {str(given)[:60]!r})"
    if not where:  # of several knobs together: the fault names them
        return what
    return f"knob {where!r}: {what[0].lower()}{what[1:]}{shown}"
