"""StreamsConfig: everything a run of several streams side by side is made from."""

from typing import ClassVar, Literal

from engine.core.config import knob
from engine.reasoning.streams.config import StreamingConfig
from engine.tasks.running_sum import LETTERS, RunningSum


class StreamsConfig(StreamingConfig):
    """A model that reads and writes several streams, and problems that go on while it does."""

    letters: ClassVar = LETTERS
    model: str = knob("running-sum-400k", "A model trained on these streams, or a folder")
    form: Literal["side by side", "in turns"] = knob(
        "side by side", "A stream for each role, or one stream in which they take turns"
    )
    turn: int = knob(
        6, "Numbers read before they are thought of, where roles take turns", low=1, high=32
    )
    task: RunningSum = knob(RunningSum(), "What comes in")

    sees: str = knob(
        "think: read; say: ask think", "Whom each stream sees beside itself", group="mask"
    )
    same_row: bool = knob(
        False, "Let tokens see those of other streams in their own row", group="mask"
    )
    pass_s: float = knob(
        0.004, "What a pass lasts on the virtual clock", low=1e-6, high=10.0, unit="s",
        group="clock", called="Time of a pass")  # fmt: skip

    @property
    def each(self) -> int:
        return 4 * (self.task.rows // self.page_size + 2)
