"""What a count of attention's traffic is made from."""

from engine.core.config import Choice, Config, knob
from engine.kernels.experiments.attention_io.tiling import Tiling
from engine.kernels.experiments.attention_io.tilings.flash import Flash


class TrafficConfig(Config):
    """Shape of one attention head, the two memories, and the tiling to watch."""

    tiling: Choice[Tiling] = knob(make=Flash, doc="The algorithm to watch")
    length: int = knob(256, "Rows of Q, K and V", low=16, high=2048, unit="tokens", log=True)
    width: int = knob(32, "Columns of Q, K and V: the head's size", low=4, high=128, log=True)
    memory: int = knob(
        2048, "Fast memory in the watched run", low=8, high=2**18, unit="words", log=True
    )
    evicts: bool = knob(
        True, "Count a word again when it is loaded again (off: a counter that never forgets)"
    )
    roomy: int = knob(
        1, "Times M that fast memory really holds, which is wrong", low=1, high=64, group="more"
    )
    seed: int = knob(0, "Seed of Q, K and V", low=0, high=2**31 - 1, group="more")
