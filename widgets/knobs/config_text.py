"""A config as text to copy: what differs from the defaults, as a command line and as Python."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from engine.core.config import Config, to_dict


def changes(config: Config, start: Config | None = None) -> dict[str, Any]:
    """Dotted path -> value of every knob that is not as in `start` (None: its type's default).

    A policy's kind comes before its own knobs, so that `update` on `start` gives `config`.
    """
    return _differing(config, "", start)


def _differing(config: Config, under: str, default: Config | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, field in type(config).model_fields.items():
        value, path = getattr(config, name), f"{under}{name}"
        if default is not None:
            start = getattr(default, name)
        else:
            start = None if field.is_required() else field.get_default(call_default_factory=True)
        if name == "kind" or value == start:
            continue
        if isinstance(value, Config):
            same = type(value) is type(start)
            if not same and "kind" in type(value).model_fields:
                found[path] = getattr(value, "kind", "")
            found.update(_differing(value, f"{path}.", start if same else None))
        else:
            found[path] = list(value) if isinstance(value, tuple) else value
    return found


def as_cli(config: Config, slug: str, start: Config | None = None) -> str:
    """The command that runs this config of a study that starts from `start`; `slug`: the study's,
    or a command that takes knobs, such as "workbench parallelism"."""
    turned = changes(config, start).items()
    sets = [f"--set {shlex.quote(f'{path}={spelled(value)}')}" for path, value in turned]
    begins = slug if slug.startswith("workbench ") else f"workbench run {slug}"
    return " ".join([begins, *sets])


def spelled(value: Any) -> str:
    """A knob's value as a command line and an address spell it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return json.dumps(dict(value))
    return "none" if value is None else str(value)


def as_python(config: Config) -> str:
    """Lines of Python that make this config."""
    kind, whole = type(config), to_dict(config)
    names = list(dict.fromkeys(path.split(".")[0] for path in changes(config)))
    fields = "".join(f"    {name}={whole[name]!r},\n" for name in names)
    made = f"{kind.__name__}(\n{fields})" if fields else f"{kind.__name__}()"
    return f"from {kind.__module__} import {kind.__name__}\n\nconfig = {made}\n"


def underscored(turned: Mapping[str, Any]) -> dict[str, Any]:
    """Knobs as keywords of `open_study` and `turn`: two underscores for a path's dots."""
    return {path.replace(".", "__"): value for path, value in turned.items()}


def as_study(config: Config, slug: str, start: Config) -> str:
    """Lines of Python that open the study `slug`, which starts from `start`, with this config."""
    turned = "".join(
        f"    {name}={value!r},\n" for name, value in underscored(changes(config, start)).items()
    )
    opened = f'open_study(\n    "{slug}",\n{turned})' if turned else f'open_study("{slug}")'
    return f"from workbench import open_study\n\nstudy = {opened}\nprint(study.figures())\nstudy\n"
