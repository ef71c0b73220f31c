"""ExecutionGuidedConfig: what writes programs line by line, and how far signals guide it."""

from typing import Any, Literal

from engine.core.config import knob
from engine.inference.config import InferenceConfig
from engine.reasoning.execution_guided.signal import CANDIDATES
from engine.reasoning.solving.by_requests import RequestConfig
from engine.tasks.list_programs import ListPrograms


class ExecutionGuidedConfig(RequestConfig):
    """A model that knows signals, problems it has never seen, and how their programs are written.

    Guidance γ: logits are those without the signal plus γ times what the signal adds to them.
    """

    model: str = knob("list-programs-170k", "A shipped model of the task, or a folder")
    task: ListPrograms = knob(make=ListPrograms, doc="What is asked")
    problems: int = knob(6, "Test problems", low=1, high=100_000, log=True)
    guided: bool = knob(
        True, "Off: plain decoding, the whole program by one request", called="Guided by execution"
    )
    guidance: float = knob(
        3.0, "How far a line is taken from its distribution without the signal (0) to the one with "
        "it (1) and beyond", low=0.0, high=100.0,
    )  # fmt: skip
    candidates: int = knob(
        3, "Continuations tried before each line; 0: the signal has the values so far alone",
        low=0, high=CANDIDATES,
    )  # fmt: skip
    horizon: int = knob(2, "Lines of a candidate", low=1, high=4, unit="lines")
    spread: float = knob(0.7, "Temperature that candidates are drawn at", low=0.01, high=10.0)
    temperature: float = knob(0.0, "Of the lines that are kept; 0: likeliest", low=0.0, high=10.0)
    also: str = knob(
        "", "A line of your own, tried beside the candidates each time", called="A line of your own"
    )
    refresh: Literal["line", "token"] = knob(
        "line", "When a signal is made anew: before each line, or before each token of it too"
    )
    fault: Literal["none", "stale", "swapped", "unread", "forgiving"] = knob(
        "none", "What goes wrong: each line but the first has the signal of the line before, the "
        "two distributions are taken for one another, candidates are run and none is told of, or "
        "what stops a program is not told", group="faults",
    )  # fmt: skip
    page_size: int = knob(8, "Tokens in a page", low=1, high=256, unit="tokens", group="engine")
    pages: int = knob(4096, "Pages of the cache", low=1, high=1 << 22, group="engine", log=True)
    max_running: int = knob(
        64,
        "Requests in the batch at most",
        low=1,
        high=1024,
        group="engine",
        called="Requests at once",
    )

    def serving(self, **changes: Any) -> InferenceConfig:
        step = {"max_running": self.max_running, "step_tokens": 1024}
        return super().serving(**step, **changes)
