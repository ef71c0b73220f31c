"""Everything a run of forks and joins on an ordinary engine is made from."""

from typing import Literal

from engine.core.config import Config, knob
from engine.inference.config import InferenceConfig
from engine.inference.executors.modelled import Modelled
from engine.reasoning.weaving.trajectory import Limits, Marks
from engine.tasks.part_sums import FORK, SERIAL, PartSums


class WeavingConfig(Config):
    """A model that forks and joins in its text, what it is asked, and what it may use."""

    model: str = knob("part-sums-500k", "A shipped model of the task, or a folder")
    dtype: Literal["float32", "bfloat16", "float16"] = knob("float32", "Numbers of weights, cache")
    seed: int = knob(0, "Seed of the draws", low=0, high=2**31 - 1)
    task: PartSums = knob(make=PartSums, doc="What is asked")
    mode: Literal["forked", "serial"] = knob(
        "forked", "The prompt's last word: work in threads, or on one part after the other"
    )
    problems: int = knob(6, "Test problems", low=1, high=100_000, log=True)
    first: int = knob(0, "Seed of the first problem", low=0, high=2**31 - 1)
    at_once: int = knob(16, "Problems under way at once", low=1, high=1024)
    temperature: float = knob(0.0, "0 takes the likeliest token", low=0.0, high=10.0)
    marks: Marks = knob(make=Marks, doc="Words of forks and joins", group="marks")

    segment: int = knob(
        200, "Tokens of one request", low=1, high=1 << 20, unit="tokens", group="budget"
    )
    threads: int = knob(8, "Threads that one fork may have", low=1, high=64, group="budget")
    together: int = knob(
        0, "Threads of a fork under way at once; 0: all of them", low=0, high=64, group="budget"
    )
    critical: int = knob(
        0, "Tokens on a problem's longest chain of requests; 0: no limit",
        low=0, high=1 << 20, unit="tokens", group="budget",
    )  # fmt: skip
    total: int = knob(
        0, "Tokens of all requests of a problem; 0: no limit", low=0, high=1 << 20, unit="tokens",
        group="budget",
    )  # fmt: skip

    siblings_apart: bool = knob(
        True, "No thread sees another, in requests and tries; off: each reads its elders first",
        group="mechanism",
    )  # fmt: skip

    page_size: int = knob(4, "Tokens in a page", low=1, high=256, unit="tokens", group="engine")
    pages: int = knob(4096, "Pages of the cache", low=1, high=1 << 22, group="engine", log=True)
    prefix_sharing: bool = knob(True, "Find prefixes computed before", group="engine")

    timed_as: str = knob(
        "", "Time each problem's requests, alone, as those of this zoo model; empty: not",
        group="modelled",
    )  # fmt: skip
    device: str = knob("h100-sxm", "… on this device of datasets/hardware", group="modelled")

    def serving(self) -> InferenceConfig:
        """The engine that answers; it knows nothing of threads."""
        shared = ("model", "dtype", "seed", "prefix_sharing", "page_size", "pages")
        return InferenceConfig(**{name: getattr(self, name) for name in shared})

    def described(self) -> InferenceConfig:
        """The engine whose seconds are modelled."""
        return InferenceConfig(
            model=self.timed_as, dtype="bfloat16", pages=512, prefix_sharing=self.prefix_sharing,
            executor=Modelled(device=self.device),
        )  # fmt: skip

    def limits(self) -> Limits:
        """What each trajectory may use."""
        budget = self.segment, self.threads, self.together, self.critical, self.total
        return Limits(*budget, self.siblings_apart)

    @property
    def begin(self) -> str:
        """What the prompt ends in."""
        return FORK if self.mode == "forked" else SERIAL
