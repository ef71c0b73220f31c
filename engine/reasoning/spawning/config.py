"""Everything a run of Countdown by serial or by spawning threads is made from."""

from typing import Literal

from engine.core.config import Config, knob
from engine.inference.request import Sampling
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.layouts.independent import Independent


class SpawningConfig(Config):
    """A model that writes searches down, the problems it gets, and what it may use for each."""

    model: str = knob("countdown-reinforced", "A shipped model, or a folder")
    search: Literal["parallel", "serial"] = knob(
        "parallel", "The prompt's first word: search by children, or in one context"
    )
    problems: int = knob(2, "Test problems to solve", low=1, high=100_000)
    first: int = knob(3, "Number of the first one", low=0, high=2**40)
    together: int = knob(12, "Problems under way at once", low=1, high=1024)
    sampling: Sampling = knob(
        make=lambda: Sampling(temperature=1.0), doc="How tokens are drawn", group="sampling"
    )
    seed: int = knob(0, "Seed of the draws", low=0, high=2**31 - 1)
    dtype: Literal["float32", "bfloat16", "float16"] = knob("float32", "Numbers of weights, cache")

    window: int = knob(
        160, "Tokens that one context may hold", low=1, high=1 << 20, unit="tokens", group="budget"
    )
    critical: int = knob(
        0, "Tokens on the longest chain from a problem to its answer; 0: no limit",
        low=0, high=1 << 20, unit="tokens", group="budget",
    )  # fmt: skip
    total: int = knob(
        0, "Tokens of a problem's threads together; 0: no limit", low=0, high=1 << 20,
        unit="tokens", group="budget",
    )  # fmt: skip
    children: int = knob(8, "Children that one join may have", low=1, high=64, group="budget")
    threads: int = knob(128, "Threads that may run at once", low=1, high=1024, group="budget")

    page_size: int = knob(16, "Tokens in a page", low=1, high=256, unit="tokens", group="cache")
    pages: int = knob(2048, "Pages of the cache", low=1, high=1 << 22, group="cache", log=True)

    own_context: bool = knob(
        True, "A child knows its message alone; off: it reads its parent's context first",
        group="mechanism",
    )  # fmt: skip
    replay: bool = knob(
        True, "Replay an answer's steps; off: believe the result it states", group="mechanism"
    )

    def reasoning(self) -> ReasoningConfig:
        """The same as the reasoner takes it; no thread sees another's words."""
        return ReasoningConfig(
            model=self.model, dtype=self.dtype, seed=self.seed, layout=Independent(), header="",
            budget=self.window, critical=self.critical, threads=self.threads,
            page_size=self.page_size, pages=self.pages, sampling=self.sampling,
        )  # fmt: skip
