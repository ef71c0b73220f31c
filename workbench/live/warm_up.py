"""Warm-up: an engine's first steps, taken before anybody asks, so that nobody waits for a compiler.

In comes a config, out goes its executor, whose kernels and whose cache's are compiled by then.
`python -m workbench.live.warm_up` compiles them for every dtype in a process of its own.
"""

import os
from contextlib import suppress
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built
from engine.inference.requests.request import Request, Sampling
from engine.kernels.experiments.ready import WEIGHTS, prepare

STEPS = 64  # at most, of each request: with a large model each costs a second
SHORT = 2  # tokens of a prompt to its pages' end, which its answer fills


def warm_build(config: InferenceConfig) -> Built:
    """The model of a config, once ordinary requests have run on it. Raises BadInput."""
    built = config.executor.build(config)
    warm_up(config, built)
    return built


def warm_up(config: InferenceConfig, built: Built) -> None:
    """Run requests through an engine of its own: a short one, then some that share whole pages and
    fill more."""
    facts = built.executor.facts
    if built.clock.name != "wall" or facts.mask:  # modelled seconds; or no words one by one
        return
    engine = Engine(config, built.executor, built.clock, _unheard, built.tokenizer)
    room = min(facts.context, config.pages * config.page_size) // 2
    many = max(min(3 * config.page_size, room) - SHORT, 1)
    drawn = {"temperature": 1.0, "top_p": 0.9, "logprobs": 1, "seed": 0}
    for length, wishes in ((1, {}), (many, {}), (many, drawn), (many, {**drawn, "n": 2})):
        sampling = Sampling(max_tokens=SHORT + 2, ignore_eos=True, **wishes)
        with suppress(BadInput):  # what this engine takes from nobody
            engine.add(Request(np.zeros(length, np.int32), sampling))
        for _ in range(STEPS):
            if not engine.step():
                break
            engine.scheduler.running.index_generated()  # else now and then
    engine.reset()


def _unheard(event: Any) -> None:
    """Nobody sees a warm-up."""


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(15)  # whoever asked for this answers people meanwhile
    for kind in WEIGHTS:
        prepare(kind, kind)
    warm_build(InferenceConfig())
