"""Text that a model writes by itself, for its draft to learn from.

A draft is asked for what the target would say, not for what people say (DistillSpec: Zhou et al.,
arXiv 2310.08461, section 4: data of the target's own).
"""

from pathlib import Path

import numpy as np

from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.requests.request import Request, sampling
from engine.training.loop.settings import Training

BATCH = 64  # texts written at once
START = (4, 24)  # tokens of people's text that a text begins with: from, up to


def continuations(model: Path, stream: np.ndarray, texts: int, training: Training) -> np.ndarray:
    """uint16 ids of `texts` texts of the model in the folder `model`, one after the other.

    Each begins with some tokens from anywhere in `stream` and goes on greedily, past any end, to
    `training.long_context` tokens.
    """
    config = InferenceConfig(model=str(model), pages=8192, max_running=BATCH, prefix_sharing=False)
    built = config.executor.build(config)
    chance = np.random.default_rng(training.seed)
    written = []
    for at in range(0, texts, BATCH):
        engine = Engine(config, built.executor, built.clock, lambda event: None, built.tokenizer)
        requests = []
        for _ in range(min(BATCH, texts - at)):
            size = int(chance.integers(*START))
            begin = int(chance.integers(len(stream) - size))
            rest = sampling(max_tokens=training.long_context - size, ignore_eos=True)
            requests.append(Request(stream[begin : begin + size].astype(np.int32), rest))
            engine.add(requests[-1])
        engine.run()
        written += [part for each in requests for part in (each.prompt, each.generated)]
    return np.concatenate(written).astype(np.uint16)
