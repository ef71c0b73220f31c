"""The model's door: a folder or a name, here or on a described device; run it, or its roofline."""

from math import prod
from typing import Any

import panel_material_ui as pmui

from engine.core.errors import BadInput
from engine.hardware.device import device, devices
from engine.models.kv import cache_spec
from engine.models.loading.find import find, public, shipped
from engine.models.parameters import all_parameters
from widgets.theme import figure
from workbench.pages.doors.door import CSS, WIDE, door, hint, ways, wrong
from workbench.pages.doors.name_field import NameField
from workbench.pages.frame.shell import address, html

HERE = "this machine"


class ModelDoor:
    """A folder or a name, a device, what fits, and two ways on."""

    def __init__(self) -> None:
        self.model = NameField(
            label="Folder or name", value="stdlib-5m", options=model_names(), **WIDE
        )
        self.on = pmui.Select(label="On", value=HERE, options=[HERE, *devices()], **WIDE)
        self.fits, self.onward = html("", CSS), html("", CSS)
        self.dark = False
        for each in (self.model, self.on):
            each.param.watch(lambda _: self.paint(self.dark), "value")

    def paint(self, dark: bool) -> None:
        """What is said beneath, and where the links lead."""
        self.dark = dark
        name, place = (self.model.value or "").strip(), self.on.value
        run = roofline = ""
        try:
            self.fits.object = hint(about_model(name, place))
        except BadInput as fault:
            self.fits.object = wrong(fault)
        else:
            run = model_address(name, place, dark)
            roofline = model_address(name, place, dark, profile_every=1)
        self.onward.object = ways({"Run it and watch": run, "Its roofline": roofline})

    @property
    def card(self) -> Any:
        return door("I have a model", self.model, self.on, self.fits, self.onward)


def model_names() -> list[str]:
    """Names that can be opened without a folder: those shipped, then public architectures."""
    return [*shipped(), *public()]


def about_model(name: str, place: str) -> str:
    """A line on a model's size and, on a described device, the tokens its cache has room for.

    Raises BadInput for a name that stands for nothing, and where the weights do not fit.
    """
    found = find(name)
    config = found.config
    bits16 = 2 * sum(prod(each.shape) for each in all_parameters(config))
    token = cache_spec(config, "float16").bytes_per_token()
    size = f"{found.name}, {number(bits16 / 2)} parameters: {figure(bits16, 'B')} in 16 bits"
    line = f"{size}, {figure(token, 'B')} of KV cache a token"
    if place == HERE:
        return f"{line}."
    sheet = device(place)
    if bits16 > sheet.capacity:
        raise BadInput(
            f"{size}; one {sheet.name} has {figure(sheet.capacity, 'B')}: take a larger device, "
            "or split it over several on the Predict page"
        )
    room = (sheet.capacity - bits16) / token
    return f"{line}; beside the weights {sheet.name} has room for {room:,.0f} tokens."


def number(count: float) -> str:
    """A count as people write that of parameters: 70.6 B, 5.48 M."""
    unit, name = (1e9, "B") if count >= 1e9 else (1e6, "M")
    return f"{count / unit:.3g} {name}"


def model_address(name: str, place: str, dark: bool, **knobs: object) -> str:
    """Where a model runs and is watched."""
    modelled = {"executor": "modelled", "executor.device": place, "dtype": "float16"}
    random = {} if find(name).folder is not None else {"dtype": "bfloat16"}
    where = random if place == HERE else modelled
    return address("serve", dark, model=name, **where, **knobs)
