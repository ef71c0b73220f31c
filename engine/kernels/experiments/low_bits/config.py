"""What a run of products with weights of few bits is made from."""

from typing import Literal

from engine.core.config import Config, knob

SPECTRUM = {
    "four": ("int4",),
    "four and eight": ("int4", "int8"),
    "some": ("int3", "int4", "int8", "e4m3"),
    "integers": tuple(f"int{bits}" for bits in range(1, 9)),
    "floats": ("e2m1", "e3m2", "e2m3", "e4m3", "e5m2"),
}


class LowBitsConfig(Config):
    """One linear layer, the formats its weight is held in, and how it is timed."""

    spectrum: Literal["four", "four and eight", "some", "integers", "floats"] = knob(
        "some", "Formats: of four bits, and of eight, some of them, integers of every width, floats"
    )
    rows: int = knob(1, "Rows multiplied at once: tokens of a step", low=1, high=256, log=True)
    outputs: int = knob(256, "Outputs of the layer", low=1, high=1 << 13, log=True)
    inputs: int = knob(384, "Inputs of the layer", low=1, high=1 << 13, log=True)
    group: int = knob(128, "Inputs that share a scale", low=32, high=4096, log=True)
    repeats: int = knob(3, "Timed rounds, variants in turns", low=1, high=100)
    unpacked: bool = knob(
        False, "Codes are unpacked to memory before they are multiplied", group="more"
    )
    containers: bool = knob(
        False, "Codes take the next power of two of bits, as simpler formats do", group="more"
    )
    shifted: bool = knob(
        False, "The last word of each block lies one lane on, which is wrong", group="more"
    )
    seed: int = knob(0, "Seed of rows and weight", low=0, high=2**31 - 1, group="more")
