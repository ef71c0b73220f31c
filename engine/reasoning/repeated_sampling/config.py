"""Everything a run of repeated sampling is made from."""

from typing import Literal

from engine.core.config import Choice, Config, knob
from engine.inference.config import InferenceConfig
from engine.reasoning.repeated_sampling.verifiers import Checker, Verifier
from engine.tasks.arithmetic import Arithmetic
from engine.tasks.task import Task


class RepeatedSamplingConfig(Config):
    """A model, problems it has never seen, how often each is asked, and who accepts answers."""

    model: str = knob("multiply-1m", "A shipped model of the task, or a folder")
    dtype: Literal["float32", "bfloat16", "float16"] = knob("float32", "Numbers of weights, cache")
    seed: int = knob(0, "Seed of the samples", low=0, high=2**31 - 1)
    task: Choice[Task] = knob(make=Arithmetic, doc="What is asked")
    problems: int = knob(24, "Test problems", low=1, high=100_000, log=True)
    first: int = knob(0, "Seed of the first problem", low=0, high=2**31 - 1)
    samples: int = knob(64, "Answers to each problem", low=2, high=1024, log=True)
    temperature: float = knob(0.6, "0 takes the likeliest token", low=0.0, high=10.0)
    top_p: float = knob(1.0, "Keep the likeliest tokens up to this mass", low=1e-9, high=1.0)
    verifier: Choice[Verifier] = knob(make=Checker, doc="Who says that an answer is right")
    estimator: Literal["unbiased", "plug_in"] = knob(
        "unbiased", "Coverage at k from n samples: over all subsets, or 1 - (1 - c/n)^k"
    )
    fitted: float = knob(
        0.25, "The law is fitted to k up to this share of the samples", low=0.05, high=1.0
    )

    max_tokens: int = knob(
        16, "Tokens of an answer at most", low=1, high=4096, unit="tokens", group="engine"
    )
    fork: bool = knob(
        True, "Samples fork from one prompt; off: each sample brings its own", group="engine"
    )
    prefix_sharing: bool = knob(True, "Find prefixes computed before", group="engine")
    page_size: int = knob(8, "Tokens in a page", low=1, high=256, unit="tokens", group="engine")
    pages: int = knob(1024, "Pages of the cache", low=1, high=1 << 22, group="engine", log=True)
    max_running: int = knob(256, "Samples in the batch at most", low=1, high=8192, group="engine")

    def serving(self) -> InferenceConfig:
        """The engine that samples."""
        shared = ("model", "dtype", "seed", "prefix_sharing", "page_size", "pages", "max_running")
        return InferenceConfig(
            **{name: getattr(self, name) for name in shared}, step_tokens=2 * self.max_running
        )
