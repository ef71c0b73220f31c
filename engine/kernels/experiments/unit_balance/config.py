"""Config of balanced attention: its shape, its softmax, and the device its pipeline is timed on."""

from engine.core.config import Config, knob


class Softmax(Config):
    """How exponentials and rescaling are done."""

    tau: float = knob(
        8.0,
        "growth of a row's largest score, in powers of 2, that rescales",
        low=0.0,
        high=64.0,
        called="Rescale threshold τ",
    )
    share: float = knob(
        0.25,
        "part of the exponentials on multiply-add units",
        low=0.0,
        high=1.0,
        called="Exponentials on multiply-add units",
    )
    degree: int = knob(3, "degree of the polynomial for 2^f", low=1, high=7)
    group: int = knob(32, "rows that rescale together (a warp's)", low=1, high=128, group="more")
    forgets: bool = knob(
        False, "only the sums are rescaled, not the accumulator, which is wrong", group="more"
    )


class BalanceConfig(Config):
    """One attention, really computed in tiles, and its pipeline on a described device."""

    heads: int = knob(1, "heads that are computed here", low=1, high=64)
    tokens: int = knob(512, "queries, and keys", low=128, high=16384, log=True)
    dim: int = knob(128, "head size", low=16, high=256, called="Head size")
    spread: float = knob(
        3.0, "how far scores spread: standard deviation of queries", low=0.01, high=16.0
    )
    softmax: Softmax = knob(make=Softmax, doc="how exponentials and rescaling are done")
    ping_pong: bool = knob(True, "two tiles of queries take turns on the units")
    device: str = knob("b200-sxm", "described device whose units are modelled")
    handoff: float = knob(
        5e-8, "signal from one unit's end to the next's begin", low=0.0, high=1e-5, unit="s",
        group="more",
    )  # fmt: skip
    modelled_tokens: int = knob(
        16384, "queries and keys of the modelled problem", low=256, high=1 << 17, log=True,
        group="more",
    )  # fmt: skip
    modelled_heads: int = knob(
        64, "heads times sequences of the modelled problem", low=1, high=4096, group="more"
    )
    seed: int = knob(0, "of the operands", low=0, high=2**31 - 1, group="more")
