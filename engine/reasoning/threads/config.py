"""Everything a run of reasoning threads is made from."""

from typing import Literal

from engine.core.config import Choice, Config, knob
from engine.inference.config import InferenceConfig
from engine.inference.executors.executor import Execution
from engine.inference.executors.real import Real
from engine.inference.requests.request import Sampling
from engine.inference.workloads.prompts import Prompts
from engine.reasoning.threads.layouts import Combined, Layout

PROMPT = (
    '"""Helpers for lists of numbers."""\n\n\ndef mean(values):\n    """The average of values."""\n'
    "    return sum(values) / len(values)\n"
)
HEADER = '\n\ndef {worker}_{step}(values):\n    """'


class ThinkingConfig(Config):
    """A model and the paged cache that it thinks in."""

    model: str = knob("stdlib-5m", "A shipped model, a folder, or a zoo name (random weights)")
    dtype: Literal["float32", "bfloat16", "float16"] = knob(
        "float32", "Numbers of weights, cache", called="Number format"
    )
    page_size: int = knob(16, "Tokens in a page", low=1, high=256, unit="tokens", group="cache")
    pages: int = knob(256, "Pages of the cache", low=1, high=1 << 22, group="cache", log=True)


class ReasoningConfig(ThinkingConfig):
    """A model, a prompt, the workers that think about it side by side, and what they see."""

    seed: int = knob(0, "Seed of random weights and sampling", low=0, high=2**31 - 1)
    prompt: str = knob(PROMPT, "What everybody reads first")
    workers: int = knob(2, "Threads that start at the prompt", low=1, high=8)
    layout: Choice[Layout] = knob(make=Combined, doc="Who sees whose words, in which order")
    header: str = knob(HEADER, "What each step begins with; {worker} and {step} are filled in")
    step_end: str = knob("\n\n", "A step ends after a token that contains this")
    step_tokens: int = knob(
        64, "A step ends once its block has so many tokens", low=1, high=1 << 20, unit="tokens"
    )
    budget: int = knob(
        32, "Tokens each thread may generate", low=1, high=1 << 20, unit="tokens", group="budget"
    )
    critical: int = knob(
        0, "Tokens the longest chain of thought may have; 0: no limit", low=0, high=1 << 20,
        unit="tokens", group="budget",
    )  # fmt: skip
    seconds: float = knob(
        0.0, "Seconds of the run's clock that each thread may take; 0: no limit", low=0.0,
        high=1e9, unit="s", group="budget",
    )  # fmt: skip
    threads: int = knob(8, "Threads that may run at once", low=1, high=1024, group="budget")

    fork_at: int = knob(
        0, "The first worker forks at this step; 0: never", low=0, high=1 << 20, group="forks"
    )
    join_at: int = knob(
        0, "… and joins its fork at this one; 0: never", low=0, high=1 << 20, group="forks"
    )
    prune_at: int = knob(
        0, "The last worker is pruned at this step; 0: never", low=0, high=1 << 20, group="forks"
    )

    sampling: Sampling = knob(
        make=Sampling, doc="How tokens are drawn; `budget` says how many", group="sampling"
    )
    requests: int = knob(
        0, "Ordinary requests that share every step with the threads", low=0, high=64,
        group="batch",
    )  # fmt: skip
    shared_steps: bool = knob(
        True, "… off: requests wait until the threads are done", group="batch"
    )
    executor: Choice[Execution] = knob(
        make=Real, doc="Tensors here, or a described device", group="batch"
    )
    attention_every: int = knob(
        0, "Sample whom threads attend to every so many steps; 0: never", low=0, high=1 << 20,
        group="views",
    )  # fmt: skip
    attention_layer: int = knob(
        -1, "Layer whose attention is sampled; -1: the last", low=-1, high=1023, group="views"
    )
    attention_head: int = knob(
        -1, "Head whose attention is sampled; -1: their mean", low=-1, high=1023, group="views"
    )
    turn_queries: bool = knob(
        True, "Turn queries to where a block stands; off: as if all stood in one place",
        group="views",
    )  # fmt: skip
    keep_logits: bool = knob(
        False, "Keep every logit and who saw what, to be checked from scratch", group="views"
    )
    fault: Literal["none", "copied", "apart"] = knob(
        "none", "What goes wrong with what threads share: whoever comes to see a page takes a copy "
        "of it, or each takes a forward pass of its own", group="faults",
    )  # fmt: skip

    def serving(self) -> InferenceConfig:
        """The engine under the threads, which serves ordinary requests in the same steps."""
        names = (
            "model", "dtype", "seed", "executor", "page_size", "pages", "sampling",
            "attention_every", "attention_layer", "attention_head",
        )  # fmt: skip
        values = {name: getattr(self, name) for name in names}
        return InferenceConfig(**values, workload=Prompts())
