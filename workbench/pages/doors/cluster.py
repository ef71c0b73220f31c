"""The cluster's door: a model, a device and how many; plan its training, or predict its serving."""

from typing import Any

import panel_material_ui as pmui

from engine.core.errors import BadInput
from engine.hardware.device import devices
from engine.models.loading.find import find
from engine.models.loading.public import public
from workbench.pages.doors.door import CSS, WIDE, door, ways, wrong
from workbench.pages.doors.name_field import NameField
from workbench.pages.frame.shell import address, html

MOST_DEVICES = 1 << 17
MOST_REPLICAS = 1024  # that serving is predicted for
TOKENS = 8192  # of a sequence
SEQUENCES = 2  # of a step, for each device: a million tokens of 64


class ClusterDoor:
    """A model, a device, how many."""

    def __init__(self) -> None:
        self.model = NameField(label="Model", value="llama-3.1-70b", options=list(public()), **WIDE)
        self.device = pmui.Select(label="Device", value="h100-sxm", options=devices(), **WIDE)
        # A field of text: the steppers of a number's field have no names for a screen reader.
        self.count = pmui.TextInput(label="How many", value="64", **WIDE)
        self.said, self.onward = html("", CSS), html("", CSS)
        self.dark = False
        for each, what in (
            (self.model, "value"), (self.device, "value"), (self.count, "value_input")
        ):  # fmt: skip
            each.param.watch(lambda _: self.paint(self.dark), what)

    def paint(self, dark: bool) -> None:
        """Where the links lead; what is wrong with what was written."""
        self.dark = dark
        plan = serve = ""
        try:
            count = devices_of(self.count.value_input)
            name = architecture_of(self.model.value or "")
        except BadInput as fault:
            self.said.object = wrong(fault)
        else:
            self.said.object = ""
            if name != self.model.value:  # the field shows its own names alone
                self.model.value = name
            plan = plan_address(name, self.device.value, count, dark)
            serve = serving_address(name, self.device.value, count, dark)
        self.onward.object = ways({"Plan its training": plan, "Predict its serving": serve})

    @property
    def card(self) -> Any:
        return door("I have a cluster", self.model, self.device, self.count, self.said, self.onward)


def devices_of(text: str) -> int:
    """How many devices a person wrote. Raises BadInput."""
    text = text.strip().replace(",", "")
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_DEVICES):
        raise BadInput(f"How many devices: give 1 to {MOST_DEVICES:,}")
    return int(text[:9])


def architecture_of(text: str) -> str:
    """The public architecture a person wrote. Raises BadInput."""
    found = find(text.strip())
    if found.folder is not None:
        raise BadInput(
            f"model {text.strip()!r}: a folder; training is planned of public architectures, of "
            "another by a TOML file: workbench predict --help"
        )
    return found.name


def plan_address(model: str, device: str, count: int, dark: bool) -> str:
    """Where training that model on so many devices is planned."""
    return address("plan", dark, **{
        "architecture": model, "model.device": device, "devices": count,
        "batch": SEQUENCES * count, "model.sequence": TOKENS,
    })  # fmt: skip


def serving_address(model: str, device: str, count: int, dark: bool) -> str:
    """Where serving that model on so many devices is predicted: tensor parallel within a node, the
    rest as data-parallel ranks."""
    tensor = max(size for size in (1, 2, 4, 8) if count % size == 0)
    return address("predict", dark, **{
        "kind": "serving", "model": model, "cluster.device": device, "split.tensor": tensor,
        "split.data": min(count // tensor, MOST_REPLICAS),
    })  # fmt: skip
