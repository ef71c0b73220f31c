"""Constants of the cost model as the TOML file that the project ships."""

from typing import Any

from engine.hardware.cost.constants import PARTS, Constants


def toml(found: Constants) -> str:
    """The constants as the file the project ships."""
    parts = ["# Constants of the operator cost model; written by `workbench cost fit`."]
    parts.append(f"source = {_quoted(found.source)}\nsplit = {_quoted(found.split)}")
    kin = ", ".join(map(_quoted, found.kin))
    lent = f"lent = {_quoted(found.lent)}\n" if found.lent else ""
    parts.append(f"device = {_quoted(found.device)}\n{lent}kin = [{kin}]")
    parts.append(f"clock = {found.clock:g}\npower = {found.power:.4g}\nbest = {found.best:g}")
    for name in PARTS:
        if getattr(found, name) is not None:
            parts.append(_section(name, getattr(found, name)))
    parts += [_section(f"rows.{name}", each) for name, each in found.rows.items()]
    parts += [_section(f"intervals.{name}", each) for name, each in found.intervals.items()]
    parts += [_section(f"elsewhere.{name}", each) for name, each in found.elsewhere.items()]
    return "\n\n".join(parts) + "\n"


def _section(name: str, part: Any) -> str:
    values = part.model_dump()
    return "\n".join([f"[{name}]", *(f"{key} = {_value(value)}" for key, value in values.items())])


def _value(value: float) -> str:
    return str(value).lower() if isinstance(value, int) else repr(float(f"{value:.4g}"))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "/").replace('"', "'") + '"'
