"""What the same bits in any batch cost where a layer keeps a state or an index: processor time of
prompts and of answers token by token, over that in chunks.

    python -m tests.bench.exact_batches [TURNS]

Small models with random weights, both ways by turns; the median and all turns' least and most.
"""

import sys
import time

import numpy as np

from tests.engine.inference.small import real_engine, request
from tests.engine.inference.test_batch_invariance import model_of
from tests.one_thread import one_thread

FAMILIES = ("qwen3-next", "qwen3.5", "nemotron-h", "deepseek-v3.2")
REQUESTS, PROMPT, ANSWER = 8, 64, 24


def seconds(model, exact: bool) -> tuple[float, float]:
    """Of the steps that compute prompts, and of the rest."""
    model.exact = exact
    held, _ = real_engine(model, pages=2000, step_tokens=256, prefix_sharing=False)
    for draw in range(REQUESTS):
        held.add(request(PROMPT, draw, 97, max_tokens=ANSWER, ignore_eos=True))
    begun = time.process_time()
    while not held.number or len(held.scheduler.prefill) or len(held.scheduler.queue):
        held.step()
    between = time.process_time()
    held.run()
    return between - begun, time.process_time() - between


def main() -> None:
    turns = int(sys.argv[1]) if sys.argv[1:] else 5
    for family in FAMILIES:
        with one_thread():
            model, ratios = model_of(family), []
            for turn in range(turns + 1):  # the first warms up
                ours, plain = (np.array(seconds(model, exact)) for exact in (True, False))
                ratios += [ours / plain] if turn else []
        for what, each in zip(("prompts", "answers"), np.transpose(ratios), strict=True):
            median, least, most = np.median(each), each.min(), each.max()
            sys.stdout.write(f"{family}, {what}: {median:.1f} times [{least:.1f}, {most:.1f}]\n")


if __name__ == "__main__":
    main()
