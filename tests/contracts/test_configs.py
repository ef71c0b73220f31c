"""Every Config, found by folder: each field says what it is, in what unit, between what bounds."""

import importlib
import inspect
from functools import cache
from typing import get_args

import pytest

from engine.core.config import Config, Policy, from_dict, kinds, knobs, to_dict
from tests.architecture.sources import files


@cache
def configs() -> list[type[Config]]:
    """Every concrete Config class the packages define."""
    found = set()
    for module in files():
        if module.endswith("__main__"):
            continue
        for _, thing in inspect.getmembers(importlib.import_module(module), inspect.isclass):
            if issubclass(thing, Config) and thing.__module__ == module:
                found.add(thing)
    concrete = [c for c in found if c not in (Config, Policy) and not inspect.isabstract(c)]
    return sorted(concrete, key=lambda c: (c.__module__, c.__name__))


def named(kind: type[Config]) -> str:
    return f"{kind.__module__}.{kind.__name__}"


def default(kind: type[Config]) -> Config | None:
    """The value with every default, where there is one for every field."""
    return kind() if all(not f.is_required() for f in kind.model_fields.values()) else None


@pytest.mark.parametrize("kind", configs(), ids=named)
def test_every_field_is_described_and_every_number_bounded(kind):
    for name, field in kind.model_fields.items():
        if name == "kind":
            continue
        assert field.description, f"{name} has no description"
        number = {int, float} & {field.annotation, *get_args(field.annotation)}
        bounds = [b for b in field.metadata if getattr(b, "ge", None) is not None]
        if number and bool not in get_args(field.annotation):
            assert bounds, f"{name} has no lower bound"


@pytest.mark.parametrize("kind", configs(), ids=named)
def test_a_config_is_frozen_and_reads_back_equal(kind):
    value = default(kind)
    if value is None:
        assert [f for f in kind.model_fields.values() if f.is_required()]
        return
    assert from_dict(kind, to_dict(value)) == value
    assert kind.model_config["frozen"] and kind.model_config["extra"] == "forbid"
    for knob in knobs(value):
        assert knob.doc or knob.type == "choice", f"{knob.path} says nothing"


def policies() -> list[type[Policy]]:
    """Those that have a kind of their own; others are bases of them."""
    found = [c for c in configs() if issubclass(c, Policy)]
    return [c for c in found if isinstance(c.model_fields["kind"].default, str)]


@pytest.mark.parametrize("kind", policies(), ids=named)
def test_every_policy_lies_in_its_bases_folder_under_its_own_kind(kind):
    base = next(b for b in kind.__mro__ if issubclass(b, Policy) and b.__dict__.get("folder"))
    tag = kind.model_fields["kind"].default
    assert kinds(base)[tag] is kind
    assert kind.__module__.startswith(base.folder), "a policy lives in its folder"
