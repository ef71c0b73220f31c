"""Everything a run of parallel traces that are pruned where they repeat each other is made from."""

from typing import Literal

from engine.core.config import Choice, Config, knob
from engine.inference.request import Sampling
from engine.reasoning.pruning.clustering import Clustering
from engine.reasoning.pruning.judge import Judge
from engine.reasoning.pruning.judges.trained import Trained
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.layouts.independent import Independent
from engine.tasks.part_sums import SERIAL, PartSums
from engine.tasks.task import Task


class PruningConfig(Config):
    """A model, questions it has never seen, how many traces each gets, and who judges them."""

    model: str = knob("part-sums-500k", "A shipped model of the task, or a folder")
    dtype: Literal["float32", "bfloat16", "float16"] = knob("float32", "Numbers of weights, cache")
    seed: int = knob(0, "Seed of the draws", low=0, high=2**31 - 1)
    task: Choice[Task] = knob(make=lambda: PartSums(parts=3, entries=5), doc="What is asked")
    ask: str = knob(SERIAL, "What stands behind a problem to ask for its traces")
    problems: int = knob(3, "Test problems", low=1, high=100_000, log=True)
    first: int = knob(0, "Seed of the first problem", low=0, high=2**31 - 1)
    traces: int = knob(16, "Threads that think about each problem", low=1, high=256, log=True)
    sampling: Sampling = knob(
        make=lambda: Sampling(temperature=1.5), doc="How tokens are drawn", group="sampling"
    )

    after: int = knob(
        40, "Tokens of a trace after which it is judged; 0: never", low=0, high=1 << 20,
        unit="tokens",
    )  # fmt: skip
    judge: Choice[Judge] = knob(make=Trained, doc="Who says whether two traces will agree")
    clustering: Clustering = knob(make=Clustering, doc="When a trace is said to repeat others")
    keep: int = knob(3, "Traces of each cluster that go on to the end", low=1, high=256)
    weighted: bool = knob(
        True, "What goes on votes for its whole cluster; off: for itself", group="vote"
    )
    sweep: bool = knob(
        False, "Also let all traces finish unseen, and draw accuracy over tokens for each judge"
    )

    longest: int = knob(
        160, "Tokens of a trace at most", low=1, high=1 << 20, unit="tokens", group="budget"
    )
    threads: int = knob(64, "Threads that may run at once", low=1, high=1024, group="budget")
    page_size: int = knob(8, "Tokens in a page", low=1, high=256, unit="tokens", group="cache")
    pages: int = knob(2048, "Pages of the cache", low=1, high=1 << 22, group="cache", log=True)

    def reasoning(self) -> ReasoningConfig:
        """The same as the reasoner takes it; no thread sees another's words."""
        return ReasoningConfig(
            model=self.model, dtype=self.dtype, seed=self.seed, layout=Independent(), header="",
            budget=self.longest, threads=max(self.threads, self.traces),
            page_size=self.page_size, pages=self.pages, sampling=self.sampling,
        )  # fmt: skip
