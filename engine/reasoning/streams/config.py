"""Everything a run of several streams side by side is made from."""

from typing import Literal

from engine.core.config import knob
from engine.reasoning.threads.config import ReasoningConfig, ThinkingConfig
from engine.tasks.running_sum import RunningSum


class StreamsConfig(ThinkingConfig):
    """A model that reads and writes several streams, and problems that go on while it does."""

    gone = ("sweep",)
    model: str = knob("running-sum-400k", "A model trained on these streams, or a folder")
    form: Literal["side by side", "in turns"] = knob(
        "side by side", "A stream for each role, or one stream in which they take turns"
    )
    turn: int = knob(
        6, "Numbers read before they are thought of, where roles take turns", low=1, high=32
    )
    task: RunningSum = knob(RunningSum(), "What comes in")
    problems: int = knob(1, "Problems side by side", low=1, high=2048, log=True)
    first: int = knob(0, "Seed of the first test problem", low=0, high=2**31 - 1)
    pace: float = knob(0.004, "Seconds between two rows of input", low=0.0, high=10.0, unit="s")

    sees: str = knob(
        "think: read; say: ask think", "Whom each stream sees beside itself", group="mask"
    )
    same_row: bool = knob(
        False, "Let tokens see those of other streams in their own row", group="mask"
    )
    virtual: bool = knob(False, "A virtual clock: each forward pass lasts `pass_s`", group="clock")
    pass_s: float = knob(
        0.004, "What a pass lasts on the virtual clock", low=1e-6, high=10.0, unit="s",
        group="clock",
    )  # fmt: skip
    page_size: int = knob(8, "Tokens in a page", low=1, high=256, unit="tokens", group="cache")
    pages: int = knob(64, "Pages of the cache", low=1, high=1 << 22, group="cache", log=True)
    keep_logits: bool = knob(
        False, "Keep every stream's logits, to be checked from scratch", group="cache"
    )

    def reasoning(self) -> ReasoningConfig:
        """The threads' config of such a run."""
        each = 4 * (self.task.rows // self.page_size + 2)
        return ReasoningConfig(
            model=self.model,
            dtype=self.dtype,
            page_size=self.page_size,
            pages=max(self.pages, each * self.problems),
        )
