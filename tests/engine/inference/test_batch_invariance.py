"""A request's logits are the same bits whatever it is scheduled with: order, batch, chunk, pages.

64 prompts: alone, in batches of up to 64, shuffled, prefilled in chunks, with prefixes found in the
cache and without, preempted and brought back. With --full every family and size of a batch, those
of the general path in steps. Recurrent states and indices of tokens are computed token by token for
it (`exact`), which they are not otherwise.
"""

from collections import Counter

import numpy as np
import pytest

from engine.core.events import Branch, Page
from engine.inference.requests.request import Request, sampling
from engine.models.model import Model
from tests.engine.inference.small import real_engine, serve
from tests.engine.models import small
from tests.one_thread import one_thread

PROMPTS, TOKENS = 64, 9
QUICK = ("llama-3", "gemma-2")  # the fused step, and the general path
SHARED = 24  # tokens that every other prompt begins with
Logits = dict[tuple[str, int], bytes]  # (prompt, position) -> bits


class Watched:
    """A sampler that keeps the bits of what it draws from; a position seen twice must agree."""

    def __init__(self, sample):
        self.sample, self.seen, self.times = sample, {}, Counter()

    def __call__(self, logits_RV, from_S, step, drawn=None):
        known = step.rows.known
        for row, at in zip(step.sample_rows_S.tolist(), from_S.tolist(), strict=True):
            key = step.requests[row].user, int(known[row])
            bits = logits_RV[at].tobytes()
            self.times[key] += 1
            assert self.seen.setdefault(key, bits) == bits
        return self.sample(logits_RV, from_S, step)


def model_of(family: str, dtype: str = "float32") -> Model:
    config = small.config(family, max_position_embeddings=128)
    model = Model(config, small.weights(config), dtype)
    model.exact = any(config.recurrent) or config.index is not None
    return model


def job(prompts: int = PROMPTS) -> list[Request]:
    draw = np.random.default_rng(11)
    shared = draw.integers(0, 97, SHARED)
    made = []
    for number in range(prompts):
        own = draw.integers(0, 97, int(draw.integers(1, 70)))
        prompt = np.concatenate([shared, own]) if number % 2 else own
        wish = sampling(max_tokens=TOKENS, ignore_eos=True)
        made.append(Request(prompt.astype(np.int32), wish, user=str(number)))
    return made


def logits(model: Model, requests: list[Request], **fields) -> tuple[Logits, list]:
    """What every token of these requests was drawn from, and the events."""
    held, events = real_engine(model, **{"pages": 2000, "max_running": 64, **fields})
    held.executor.sample = watched = Watched(held.executor.sample)
    serve(held, requests)
    return watched.seen, events


def alone(model: Model) -> Logits:
    found: Logits = {}
    for one in job():
        found |= logits(model, [one], prefix_sharing=False)[0]
    assert len(found) == PROMPTS * TOKENS
    return found


def shuffled(seed: int) -> list[Request]:
    requests = job()
    np.random.default_rng(seed).shuffle(requests)
    return requests


def differing(found: Logits, right: Logits) -> list[tuple[str, int]]:
    assert found.keys() == right.keys()
    return [key for key, bits in found.items() if bits != right[key]]


FAMILIES = (*small.FAMILIES, "llama-3 bfloat16", "qwen3 bfloat16")
MARKED = [
    pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in FAMILIES
]


@pytest.fixture(scope="module", params=MARKED)
def held(request: pytest.FixtureRequest) -> tuple[Model, Logits]:
    """A family's model, and the logits of each prompt by itself."""
    family, _, dtype = request.param.partition(" ")
    with one_thread():
        model = model_of(family, dtype or "float32")
        return model, alone(model)


def test_batches_of_every_size_and_order(held, full):
    model, right = held
    with one_thread():
        sizes = (3, 64)
        if full:
            sizes = range(1, 65) if model.fused else (1, 2, 3, 4, 5, 8, 13, 21, 34, 55, 64)
        for most in sizes:
            found, _ = logits(model, shuffled(most), max_running=most, prefix_sharing=False)
            assert not differing(found, right), most


@pytest.mark.parametrize("chunk", [7, 64, 512])
def test_prompts_in_chunks(held, chunk):
    model, right = held
    with one_thread():
        found, _ = logits(model, shuffled(chunk), step_tokens=chunk, prefix_sharing=False)
    assert not differing(found, right)


def test_prefixes_found_in_the_cache(held):
    model, right = held
    with one_thread():
        found, events = logits(model, shuffled(1), max_running=5)
    assert any(isinstance(e, Page) and e.state == "hit" for e in events), "nothing was shared"
    assert not differing(found, right)


@pytest.mark.parametrize("preemption", ["recompute", "swap"])
def test_after_preemption(held, preemption):
    model, right = held
    with one_thread():
        found, events = logits(
            model, shuffled(2), pages=60, host_pages=2000, preemption=preemption,
            prefix_sharing=False,
        )  # fmt: skip
    state = "swapped" if preemption == "swap" else "preempted"
    assert any(isinstance(e, Branch) and e.state == state for e in events), "nobody was preempted"
    assert not differing(found, right)


FEW = 6
WAYS = (
    {"max_running": 6}, {"step_tokens": 7},
    {"pages": 36, "preemption": "swap", "host_pages": 200},
)  # fmt: skip


@pytest.mark.parametrize("family", ["nemotron-h", "deepseek-v3.2"])
def test_a_state_and_an_index_are_the_same_bits_token_by_token_and_differ_otherwise(family):
    with one_thread():
        model, right = model_of(family), {}
        for one in job(FEW):
            right |= logits(model, [one], prefix_sharing=False)[0]
        for fields in WAYS:
            assert not differing(logits(model, job(FEW), prefix_sharing=False, **fields)[0], right)
        model.exact = False
        assert differing(logits(model, job(FEW), prefix_sharing=False, step_tokens=7)[0], right)
