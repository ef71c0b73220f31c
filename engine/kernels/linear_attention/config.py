"""What a study of gated linear attention runs: shapes, gates, form and how the work is cut."""

from typing import Literal

from engine.core.config import Config, knob

FormName = Literal["chunkwise", "recurrent", "parallel", "unsplit", "restarted"]


class GatedLinearConfig(Config):
    """A sweep over lengths, and one sequence cut into segments for several workers."""

    form: FormName = knob(
        "chunkwise",
        "form under test; unsplit: chunkwise without the second level of sub-chunks; "
        "restarted: chunkwise, but no state is carried and all before is read again",
    )
    longest: int = knob(2048, "longest sequence", low=256, high=65536, unit="tokens", log=True)
    shortest: int = knob(256, "shortest sequence", low=64, high=4096, unit="tokens", log=True)
    heads: int = knob(4, "heads", low=1, high=32)
    key: int = knob(64, "numbers of a query or key", low=16, high=256)
    value: int = knob(64, "numbers of a value", low=16, high=256)
    half_life: float = knob(
        64.0, "tokens after which a memory has halved", low=0.001, high=1e6, unit="tokens", log=True
    )
    chunk: int = knob(64, "chunk, a multiple of the sub-chunk", low=16, high=1024, unit="tokens")
    sub_chunk: int = knob(16, "sub-chunk, a multiple of 16", low=16, high=128, unit="tokens")
    segments: int = knob(8, "parts of the sequence done at once", low=1, high=64, group="Segments")
    workers: int = knob(2, "threads that do segments", low=1, high=16, group="Segments")
    pass_state: bool = knob(
        True, "carry the state from segment to segment; without, each forgets", group="Segments"
    )
    rounds: int = knob(2, "times the longest lengths are measured; short ones more often",
                       low=1, high=25, group="Timing")  # fmt: skip
    patience: float = knob(600.0, "a pass of the form under test that takes longer ends the sweep",
                           low=0.001, high=3600.0, unit="s", log=True, group="Timing")  # fmt: skip
    seed: int = knob(0, "of the random inputs", low=0, high=2**31 - 1, group="Timing")
