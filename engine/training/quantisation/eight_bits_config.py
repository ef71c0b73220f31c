"""What a comparison of 8-bit floats and integers is made from."""

from engine.core.config import Config, knob


class EightBitsConfig(Config):
    """Tensors with outliers, a shipped model's layers, and a layer trained to be rounded."""

    outlier: float = knob(
        12.0, "Standard deviations of an outlier; 1 is none", low=1.0, high=100.0, log=True,
        group="Tensors",
    )  # fmt: skip
    best: bool = knob(
        True,
        "Ranges with the least squared error (off: the largest magnitude)",
        group="Tensors",
        called="Least-squares ranges",
    )
    numbers: int = knob(
        8192, "Numbers in a tensor", low=256, high=1 << 20, log=True, group="Tensors"
    )
    draws: int = knob(8, "Tensors drawn at each rate", low=2, high=64, group="Tensors")
    channels: float = knob(
        1.0, "Times that one input channel in 64 of a linear layer stands out, as few of a large "
        "model do, its weights as much smaller", low=1.0, high=1000.0, log=True,
        called="Outlier channels",
    )  # fmt: skip
    model: str = knob("stdlib-5m", "A shipped model or a folder, with validation.txt")
    windows: int = knob(16, "Windows of its text", low=2, high=64)
    length: int = knob(32, "Tokens of a window", low=8, high=512)
    steps: int = knob(
        12, "Steps of training a layer to be rounded", low=0, high=500, group="Training"
    )
    rate: float = knob(
        0.01, "Learning rate at first, of a weight's step; it falls to nought", low=1e-4, high=1.0,
        log=True, group="Training",
    )  # fmt: skip
    rows: int = knob(
        1024, "Outputs and inputs of the timed layer", low=64, high=1 << 13, log=True,
        group="Timing",
    )  # fmt: skip
    repeats: int = knob(2, "Timed rounds of that layer", low=1, high=100, group="Timing")
    evenly: bool = knob(
        False,
        "Floats' values lie evenly, as integers' do: not what they are",
        group="more",
        called="Evenly spaced values",
    )
    coarse: bool = knob(
        False, "Integers' codes keep their upper four bits only, which is wrong", group="more"
    )
    free: bool = knob(
        False, "A float's sum is neither aligned nor normalised, which is wrong", group="more"
    )
    seed: int = knob(0, "Seed of the tensors", low=0, high=2**31 - 1, group="more")
