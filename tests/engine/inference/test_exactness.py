"""On a real model: what is scheduled when changes no token."""

import numpy as np
import pytest

from engine.core.events import Branch
from engine.inference.requests.request import Request, sampling
from tests.engine.inference.small import TINY, real_engine, request, serve, tiny_model

VOCAB = TINY["vocab_size"]


@pytest.fixture(scope="module")
def model():
    return tiny_model()


def job(count: int = 12, **wish) -> list[Request]:
    """Prompts of mixed lengths, some with a prefix in common."""
    draw = np.random.default_rng(5)
    prefix = draw.integers(0, VOCAB, 24)
    made = []
    for number in range(count):
        own = draw.integers(0, VOCAB, int(draw.integers(2, 30)))
        prompt = np.concatenate([prefix, own]) if number % 2 else own
        fields = {"max_tokens": int(draw.integers(8, 30)), "ignore_eos": True} | wish
        made.append(Request(prompt.astype(np.int32), sampling(**fields)))
    return made


@pytest.fixture(scope="module")
def alone(model):
    """Every request of the job by itself, on a cache without sharing."""
    return [serve(real_engine(model, prefix_sharing=False)[0], [one])[0] for one in job()]


@pytest.mark.parametrize(
    "fields",
    [
        {"pages": 400, "max_running": 12, "step_tokens": 512},
        {"pages": 400, "max_running": 12, "step_tokens": 17},
        {"pages": 400, "max_running": 3, "prefix_sharing": False},
        {"pages": 400, "batching": "prefill_first"},
        {"pages": 400, "batching": "static_batch"},
        {"pages": 400, "batching": "one_instance"},
        {"pages": 400, "batching": "temporal_fusion"},
        {"pages": 400, "ordering": "global_prefix", "eviction": "next_use"},
        {"pages": 400, "ordering": "shortest_first", "page_size": 16},
    ],
    ids=str,
)
def test_a_request_says_the_same_alone_and_in_any_batch(model, alone, fields):
    held, _ = real_engine(model, **fields)
    requests = job()
    held.prepare(requests)
    assert serve(held, requests) == alone


@pytest.mark.parametrize("preemption", ["recompute", "swap"])
@pytest.mark.parametrize("ordering", ["fcfs", "shortest_first"])
def test_answers_are_the_same_with_a_quarter_of_the_pages(model, preemption, ordering, full):
    """What all of a step's requests need, cut to a quarter: 12 requests, or 1,000 with --full."""
    count, together = (1000, 64) if full else (12, 12)
    free, _ = real_engine(model, pages=5000, prefix_sharing=False, max_running=together)
    right = serve(free, job(count))
    sizes = sorted(-(-(len(one.prompt) + one.sampling.max_tokens) // 4) for one in job(count))
    needed = sum(sizes[-together:])
    held, events = real_engine(
        model,
        pages=needed // 4,
        host_pages=needed,
        preemption=preemption,
        ordering=ordering,
        prefix_sharing=False,
        max_running=together,
        step_tokens=512,
    )
    assert serve(held, job(count)) == right
    state = "swapped" if preemption == "swap" else "preempted"
    assert any(isinstance(e, Branch) and e.state == state for e in events), "nobody was preempted"


def test_sampled_answers_depend_on_the_seed_and_not_on_the_batch(model):
    wish = {"temperature": 1.0, "top_p": 0.95, "max_tokens": 16}
    by_itself = [
        serve(real_engine(model)[0], [Request(one.prompt, one.sampling)])[0]
        for one in (request(10, s, VOCAB, seed=s, **wish) for s in range(4))
    ]
    held, _ = real_engine(model, step_tokens=9)
    together = serve(held, [request(10, s, VOCAB, seed=s, **wish) for s in range(4)])
    assert together == by_itself
    again = serve(real_engine(model)[0], [request(10, 0, VOCAB, seed=99, **wish)])[0]
    assert again != by_itself[0]


def test_log_probabilities_are_the_models_own(model):
    held, events = real_engine(model)
    one = request(10, 1, VOCAB, logprobs=5, max_tokens=6, temperature=0.8, logit_bias=[(7, 3.0)])
    serve(held, [one])
    assert len(one.logprobs) == len(one.tops) == 6
    for logprob, likeliest in zip(one.logprobs, one.tops, strict=True):
        values = [value for _, value in likeliest]
        assert values == sorted(values, reverse=True) and len(values) == 5
        assert logprob <= values[0] + 1e-9 and max(values) < 0
    told = [e.logprob for e in events if type(e).__name__ == "Token"]
    np.testing.assert_allclose(told, one.logprobs, rtol=1e-5)


def test_greedy_samples_of_one_prompt_are_all_the_same_and_merge_their_pages(model):
    held, events = real_engine(model, pages=200)
    one = request(13, 1, VOCAB, n=3, max_tokens=40, ignore_eos=True)
    held.add(one)
    peak = 0
    answers = {}
    while held.step():
        for name, thread in held.requests.items():
            answers[name] = thread
        peak = max(peak, held.cache.held)
    said = {tuple(thread.generated.tolist()) for thread in answers.values()}
    assert len(answers) == 3 and len(said) == 1
    assert peak < 3 * 14, "full pages with the same contents are kept once"
