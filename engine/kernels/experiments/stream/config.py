"""What a run of STREAM is made from."""

from engine.core.config import Config, knob


class StreamConfig(Config):
    """Vectors, repetitions, and the backend to stand beside the native loop."""

    backend: str = knob("", "Backend by name; empty picks the fastest that works here")
    length: int = knob(
        2**22, "Numbers in each of three vectors (STREAM asks for 4 × the last cache)",
        low=64, high=2**28, unit="float64", log=True,
    )  # fmt: skip
    repeats: int = knob(5, "Timed repetitions, backends in turns", low=1, high=100)
    factor: float = knob(3.0, "The scalar of scale and triad", low=-1e3, high=1e3)
    short: bool = knob(False, "Comparisons stop one number early, which is wrong", group="more")
    through: bool = knob(
        False, "Streaming stores go through the caches after all, which is wrong", group="more"
    )
    seed: int = knob(
        0, "Seed of the whole numbers that results are compared on", low=0, group="more"
    )
