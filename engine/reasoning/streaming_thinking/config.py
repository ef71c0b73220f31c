"""Everything a run of thinking while reading is made from."""

from engine.core.config import Choice, knob
from engine.reasoning.streaming_thinking.policies import ReadingPolicy, Streaming
from engine.reasoning.threads.config import ReasoningConfig, ThinkingConfig
from engine.tasks.ledger import Ledger


class ReadingConfig(ThinkingConfig):
    """A model, problems that arrive token by token, and when it may think about them."""

    gone = ("sweep",)
    model: str = knob("ledger-700k", "A model trained to think while it reads, or a folder")
    policy: Choice[ReadingPolicy] = knob(
        make=Streaming, doc="When a thought may begin, and what it sees"
    )
    pace: float = knob(
        0.004, "Seconds between two tokens of the input; 0: it is there at once",
        low=0.0, high=10.0, unit="s",
    )  # fmt: skip
    task: Ledger = knob(Ledger(entries=5), "What is read")
    problems: int = knob(1, "Problems read side by side", low=1, high=2048, log=True)
    first: int = knob(0, "Seed of the first test problem", low=0, high=2**31 - 1)

    apart: int = knob(
        64, "Position of the first thought, beyond all that can be read", low=1, high=4096,
        unit="tokens", group="positions",
    )  # fmt: skip
    shifting: bool = knob(
        False, "Put thoughts right behind what has arrived, so that arrivals shift them",
        group="positions",
    )  # fmt: skip
    virtual: bool = knob(False, "A virtual clock: each forward pass lasts `pass_s`", group="clock")
    pass_s: float = knob(
        0.001, "What a pass lasts on the virtual clock", low=1e-6, high=10.0, unit="s",
        group="clock",
    )  # fmt: skip
    page_size: int = knob(8, "Tokens in a page", low=1, high=256, unit="tokens", group="cache")
    pages: int = knob(64, "Pages of the cache", low=1, high=1 << 22, group="cache", log=True)
    keep_logits: bool = knob(
        False, "Keep every thought's logits, to be checked from scratch", group="cache"
    )

    def reasoning(self) -> ReasoningConfig:
        """The threads' config of such a run."""
        letters = 5 * self.task.entries + 8, 10 * self.task.entries + 16  # read, thought: at most
        each = sum(-(-count // self.page_size) for count in letters)
        pages = max(self.pages, each * self.problems)
        return ReasoningConfig(
            model=self.model, dtype=self.dtype, page_size=self.page_size, pages=pages
        )
