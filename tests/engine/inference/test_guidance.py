"""Classifier-free guidance: a request's two rows, whatever happens to their pages between steps."""

import numpy as np
import pytest

from engine.core.errors import BadInput
from engine.inference.requests.request import Request, sampling
from engine.models.batch import pack
from engine.models.kv import PagedKV
from engine.models.model import Model
from tests.engine.inference.small import VOCAB as LETTERS
from tests.engine.inference.small import Words, engine, real_engine, request, serve
from tests.engine.inference.test_speculation import VOCAB, draft, model, schedule, speculating

__all__ = ["draft", "model"]  # fixtures
LONGEST = 64


def logits(model: Model, tokens: list[int]) -> np.ndarray:
    """After the last of `tokens`, from nothing."""
    kv = PagedKV(model.spec, 1, LONGEST)
    return model.forward(pack([tokens], [0], [[0]], LONGEST), kv)[0].numpy()


def by_hand(model: Model, one: Request) -> list[int]:
    """The greedy answer, both rows computed from the start for each token."""
    said: list[int] = []
    assert one.negative is not None
    for _ in range(one.sampling.max_tokens):
        own = logits(model, [*one.prompt.tolist(), *said])
        other = logits(model, [*one.negative.tolist(), *said])
        said.append(int((other + one.sampling.guidance * (own - other)).argmax()))
    return said


def asked(draw: np.random.Generator, guidance: float) -> Request:
    prompt = draw.integers(0, VOCAB, int(draw.integers(6, 20))).astype(np.int32)
    wish = sampling(max_tokens=int(draw.integers(2, 14)), ignore_eos=True, guidance=guidance)
    negative = draw.integers(0, VOCAB, int(draw.integers(1, len(prompt) + 1))).astype(np.int32)
    return Request(prompt, wish, negative=negative)


def test_guided_answers_are_those_computed_by_hand_under_any_schedule(model, draft, full):
    for seed in range(100 if full else 6):
        draw = np.random.default_rng(seed)
        fields = schedule(draw)
        made = [asked(draw, float(draw.choice([0.0, 1.0, 1.5, 3.0]))) for _ in range(5)]
        made.append(Request(made[0].prompt, made[0].sampling, negative=made[1].prompt[:3]))
        wanted = [by_hand(model, one) for one in made]
        if seed % 2:
            held, _ = speculating(model, draft, **fields)
        else:
            fields.pop("how")
            held, _ = real_engine(model, **fields)
        held.prepare(made)
        assert serve(held, made) == wanted, f"seed {seed}: {fields}"
        assert held.cache.held == 0


def test_guidance_without_a_negative_prompt_is_refused_in_a_line(model):
    held = engine(Words())[0]
    with pytest.raises(BadInput, match="guidance 2 needs a negative_prompt, .* give one"):
        held.add(request(6, 0, LETTERS, guidance=2.0))
    with pytest.raises(BadInput, match="one answer; set n to 1"):
        held.add(request(6, 0, LETTERS, guidance=2.0, negative_prompt="a", n=2))
    with pytest.raises(BadInput, match="has 7 tokens, the prompt 6; it may have no more"):
        held.add(
            Request(np.zeros(6, np.int32), sampling(guidance=2.0), negative=np.zeros(7, np.int32))
        )
    with pytest.raises(BadInput, match="no tokenizer"):
        engine()[0].add(request(6, 0, LETTERS, guidance=2.0, negative_prompt="a"))


def test_a_guided_request_does_not_fork(model):
    held, _ = real_engine(model)
    one = asked(np.random.default_rng(0), 2.0)
    held.add(one)
    held.step()
    held.fork(one.id)
    held.run()
    assert one.state == "finished" and held.cache.held == 0
