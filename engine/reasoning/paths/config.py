"""Everything a run of parallel paths with a summary is made from."""

from collections.abc import Callable, Mapping
from typing import Literal

from engine.core.config import Config, knob
from engine.inference.request import Sampling
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.layouts.independent import Independent

# How many of so many paths have to end by themselves for the summary to begin.
ENOUGH: Mapping[str, Callable[[int], int]] = {
    "first": lambda width: 1,
    "half": lambda width: -(-width // 2),
    "last": lambda width: width,
}


class PathsConfig(Config):
    """A model with path tokens, the problems it gets, and what it may use for each."""

    model: str = knob("countdown-paths", "A shipped model, or a folder")
    width: int = knob(8, "Paths of thought side by side", low=1, high=64, unit="paths")
    problems: int = knob(1, "Test problems to solve", low=1, high=100_000)
    first: int = knob(15, "Number of the first one", low=0, high=2**40)
    together: int = knob(8, "Problems under way at once", low=1, high=1024)
    sampling: Sampling = knob(
        make=lambda: Sampling(temperature=0.5), doc="How tokens are drawn", group="sampling"
    )
    seed: int = knob(0, "Seed of the draws", low=0, high=2**31 - 1)
    dtype: Literal["float32", "bfloat16", "float16"] = knob("float32", "Numbers of weights, cache")

    budget: int = knob(
        96, "Tokens that each path may draw", low=1, high=1 << 20, unit="tokens", group="budget"
    )
    total: int = knob(
        0, "Tokens that all paths together may draw, dealt out evenly; 0: `budget` each",
        low=0, high=1 << 20, unit="tokens", group="budget",
    )  # fmt: skip
    summary: int = knob(
        16, "Tokens that the summary may draw", low=1, high=1 << 20, unit="tokens", group="budget"
    )
    finish: Literal["first", "half", "last"] = knob(
        "first", "The summary begins when the first path has ended by itself, half of them, or all",
        group="budget",
    )  # fmt: skip
    threads: int = knob(1024, "Threads that may run at once", low=1, high=1024, group="budget")
    sweep: bool = knob(False, "Afterwards solve problems at every width, for the curves")

    page_size: int = knob(16, "Tokens in a page", low=1, high=256, unit="tokens", group="cache")
    pages: int = knob(128, "Pages of the cache", low=1, high=1 << 22, group="cache", log=True)

    embeddings: bool = knob(
        True, "Add each path's embedding to its keys and values", group="mechanism"
    )
    abreast: bool = knob(
        True, "Paths share their positions; off: the summary sees one after another",
        group="mechanism",
    )  # fmt: skip
    sees: int = knob(
        0, "How many paths the summary sees; 0: all", low=0, high=64, group="mechanism"
    )
    reuse: bool = knob(
        True, "The summary reads the paths' cache; off: it computes their text again, as one",
        group="mechanism",
    )  # fmt: skip
    keep_logits: bool = knob(
        False, "Keep every logit, to be checked from scratch", group="mechanism"
    )

    @property
    def each(self) -> int:
        """Tokens that each path may draw."""
        return max(1, self.total // self.width) if self.total else self.budget

    def reasoning(self) -> ReasoningConfig:
        """The same as the reasoner takes it."""
        return ReasoningConfig(
            model=self.model, dtype=self.dtype, seed=self.seed, layout=Independent(), header="",
            budget=self.each, threads=self.threads, page_size=self.page_size,
            pages=self.pages, sampling=self.sampling, keep_logits=self.keep_logits,
        )  # fmt: skip
