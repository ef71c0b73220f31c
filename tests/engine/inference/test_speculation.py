"""Speculation changes no answer: random schedules against each request alone, token for token."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.core.clock import VirtualClock
from engine.core.errors import BadInput
from engine.core.events import Level, Page, Span, Token
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.tensors.asked import alone
from engine.inference.executors.tensors.real_executor import build, executor_for
from engine.inference.requests.request import Request, sampling
from engine.models.config import Streams
from engine.models.families import parse
from engine.models.gathered import Cast
from engine.models.loading import draft as draft_by_name
from engine.models.loading.find import Found
from engine.models.loading.load import random_model
from engine.models.model import Model
from tests.engine.inference.play import CHOICES
from tests.engine.inference.small import TINY, Words, engine, real_engine, request, serve
from tests.engine.inference.small import config as small_config
from tests.engine.models import small

VOCAB = TINY["vocab_size"]


@pytest.fixture(scope="module")
def model() -> Model:
    return random_model(parse(TINY, "tiny"), seed=3)


@pytest.fixture(scope="module")
def draft(model) -> Model:
    return noisy(model)


def noisy(model: Model) -> Model:
    """`model` with noise on its matrices: right more often than not, and wrong often enough."""
    noise, weights = torch.Generator().manual_seed(0), dict(Cast(model.weights, torch.float32))
    for name, own in weights.items():
        if own.ndim > 1:
            weights[name] = own + 0.4 * own.std() * torch.randn(own.shape, generator=noise)
    return Model(model.config, weights, "float32")


def speculating(model: Model, *drafts: Model | None, **fields) -> tuple[Engine, list]:
    """An engine whose requests draft: by `drafts`, or by n-grams where that is None."""
    draft = drafts[0]
    how = {"kind": "draft_model" if draft else "ngram", **fields.pop("how", {})}
    quiet = fields.pop("quiet", False)
    chosen, events = small_config(speculation=how, **fields), []
    held = executor_for(chosen, model, "tiny", drafts=[one for one in drafts if one])
    engine = Engine(chosen, held, VirtualClock(), events.append, Words(), quiet=quiet)
    return engine, events


def job(draw: np.random.Generator, vocab: int = VOCAB, **wish) -> list[Request]:
    """Prompts of mixed lengths, some with a prefix in common, some that repeat themselves."""
    prefix, made = draw.integers(0, vocab, 24), []
    for number in range(6):
        own = draw.integers(0, vocab, int(draw.integers(2, 20)))
        if number % 3 == 0:
            own = np.tile(own[:5], 4)
        prompt = np.concatenate([prefix, own]) if number % 2 else own
        fields = {"max_tokens": int(draw.integers(1, 24)), "ignore_eos": True} | wish
        made.append(Request(prompt.astype(np.int32), sampling(**fields)))
    return made


def schedule(draw: np.random.Generator) -> dict:
    """A random engine, most of them short of pages, of rows or of tokens a step."""
    size = int(draw.choice([1, 2, 4, 16]))
    picked = {
        name: str(draw.choice(options))
        for name, options in CHOICES.items()
        if name != "speculation"
    }
    return picked | {
        "page_size": size,
        "pages": -(-72 // size) + int(draw.choice([0, 3, 400])),
        "host_pages": int(draw.choice([0, 100])),
        "max_running": int(draw.integers(1, 7)),
        "step_tokens": int(draw.choice([3, 17, 512])),
        "prefix_sharing": bool(draw.random() < 0.8),
        "how": {"tokens": int(draw.choice([1, 3, 7]))},
    }


@pytest.mark.parametrize("part", range(4))
def test_greedy_answers_are_the_plain_ones_under_any_schedule(model, draft, part, full):
    """The first seeds of a part run; 125 of each with --full."""
    for seed in range(1000 * part, 1000 * part + (125 if full else 5)):
        fields = schedule(np.random.default_rng(seed))
        alone = [
            serve(real_engine(model, pages=200, prefix_sharing=False)[0], [one])[0]
            for one in job(np.random.default_rng(seed))
        ]
        held, _ = speculating(model, (None, draft, model, draft)[part], **fields)
        requests = job(np.random.default_rng(seed))
        held.prepare(requests)
        assert serve(held, requests) == alone, f"seed {seed}: {fields}"
        assert held.cache.held == 0, f"seed {seed}: pages are held by nobody"


@pytest.mark.parametrize("family", small.EXACT)
def test_greedy_answers_are_the_plain_ones_in_every_family(family, full):
    if not full and family not in ("llama-3", "gemma-2"):
        pytest.skip("with --full")
    config = small.config(family, max_position_embeddings=128)
    model = Model(config, small.weights(config), "float32")
    draft = noisy(model)
    for seed in range(-(-500 // len(small.EXACT)) if full else 2):
        fields = schedule(np.random.default_rng(seed))
        alone = [
            serve(real_engine(model, pages=200, prefix_sharing=False)[0], [one])[0]
            for one in job(np.random.default_rng(seed), config.vocab)
        ]
        held, _ = speculating(model, draft if seed % 2 else None, **fields)
        assert serve(held, job(np.random.default_rng(seed), config.vocab)) == alone, f"seed {seed}"


@pytest.mark.parametrize("by_model", [False, True], ids=["ngram", "draft_model"])
def test_seeds_stops_penalties_and_log_probabilities_are_as_without(model, draft, by_model):
    """Where drafts are kept if the target draws the same: the very answers, and why they end."""
    wishes = [
        {"temperature": 0.8, "seed": 5, "top_p": 0.9, "logprobs": 3},
        {"temperature": 1.0, "seed": 6, "repetition_penalty": 1.3, "min_tokens": 6},
        {"stop_tokens": tuple(range(0, VOCAB, 7)), "logprobs": 2},
        {"stop": tuple(chr(97 + token) for token in range(0, VOCAB, 9))},
        {"temperature": 0.7, "n": 3, "logit_bias": ((7, 4.0),)},
    ]
    found = []
    alone, drafting = small_config(pages=300), speculating(model, draft if by_model else None)[0]
    plain = Engine(alone, executor_for(alone, model, "tiny"), VirtualClock(), [].append, Words())
    for held in (plain, drafting):
        heard: list = []

        def hear(one, token, text, logprob, heard=heard):
            heard.append((one.id, token, text, round(logprob, 4)))

        for wish in wishes:
            one = job(np.random.default_rng(3), **{"max_tokens": 30, **wish})[0]
            one.on_token = hear
            held.add(one)
        held.hear()
        live = list(held.requests.values())
        held.run()
        said = [(r.id, r.tokens.tolist(), r.reason, np.round(r.logprobs, 4).tolist()) for r in live]
        found.append((said, sorted(heard)))
    assert found[0] == found[1]


class EveryOther:
    """A grammar whose tokens are even and odd in turns: a draft's place would be another one."""

    broken = False

    def __init__(self, odd: int = 0) -> None:
        self.odd = odd

    def forbid(self, scores_V):
        scores_V[1 - self.odd :: 2] = -np.inf

    def take(self, token):
        assert token % 2 == self.odd
        self.odd = 1 - self.odd

    def fork(self):
        return EveryOther(self.odd)


def test_an_answer_held_to_a_grammar_is_as_without_drafts(model):
    said = []
    for held in (real_engine(model, pages=300)[0], speculating(model, model, pages=300)[0]):
        one, other = (request(9, seed, VOCAB, max_tokens=20, ignore_eos=True) for seed in (1, 2))
        one.guide = EveryOther()
        said.append(serve(held, [one, other]))
    assert said[0] == said[1] and [token % 2 for token in said[0][0]] == [0, 1] * 10


def test_refused_drafts_are_told_of_and_their_pages_given_back(model, draft):
    held, events = speculating(model, draft, page_size=2, how={"tokens": 6})
    answers = serve(held, [request(9, 4, VOCAB, max_tokens=40, ignore_eos=True)])
    tokens = [e for e in events if isinstance(e, Token)]
    refused = [e for e in tokens if not e.accepted]
    assert len(tokens) - len(refused) == len(answers[0]) == 40 and refused
    assert all(e.text and e.logprob < 0 for e in refused)
    back = [e for e in events if isinstance(e, Page) and e.why == "refused drafts"]
    assert back, "a draft of six tokens reaches beyond a page of two"
    verified = [e for e in events if isinstance(e, Span) and e.name == "verify"]
    kept = sum(int(part[5:]) for e in verified for part in e.tag.split() if part[:5] == "kept=")
    drafted = sum(
        int(part[7:]) for e in verified for part in e.tag.split() if part[:7] == "drafts="
    )
    assert drafted - kept == len(refused)
    lengths = [e.value for e in events if isinstance(e, Level) and e.name == "accepted_length"]
    assert lengths and min(lengths) >= 1 and max(lengths) > 1
    times = [e.time for e in events]
    assert times == sorted(times)


def test_a_target_that_drafts_for_itself_keeps_every_draft(model):
    held, events = speculating(model, model, pages=300, how={"tokens": 5})
    serve(held, [request(9, 4, VOCAB, max_tokens=36, ignore_eos=True)])
    assert all(e.accepted for e in events if isinstance(e, Token))
    assert held.number == 7, "a prompt, then six tokens a step"


def test_a_batch_that_advances_by_one_length_says_something_else(model, draft):
    """The fault the study breaks itself with: a batch as a rectangle."""
    right = serve(real_engine(model, pages=300)[0], job(np.random.default_rng(1), max_tokens=20))
    held, _ = speculating(model, draft, pages=300, how={"fault": "one_length"})
    assert serve(held, job(np.random.default_rng(1), max_tokens=20)) != right


@pytest.mark.parametrize("kind", ["ngram", "draft_model", "mirror"])
def test_a_modelled_run_keeps_the_share_of_drafts_it_is_told(kind):
    how = {"kind": kind, "acceptance": 0.8, "tokens": 4}
    fields = {"executor": "modelled", "model": "stdlib-5m", "speculation": how, "max_running": 64}
    plain, said = None, None
    for config in (InferenceConfig(**fields | {"speculation": "none"}), InferenceConfig(**fields)):
        built, events = config.executor.build(config), []
        held = Engine(config, built.executor, built.clock, events.append)
        wish = sampling(max_tokens=120, ignore_eos=True)
        said = serve(held, [Request(np.arange(8, dtype=np.int32), wish) for _ in range(16)])
        plain = plain or said
    assert said == plain, "what a modelled request says is its own, drafts or not"
    rates = [e.value for e in events if isinstance(e, Level) and e.name == "accepted_length"]
    if kind == "mirror":
        spans = {name: [e for e in events if isinstance(e, Span) and e.name == name]
                 for name in ("draft", "verify")}  # fmt: skip
        ends = np.array([e.stop for e in spans["verify"]])
        beside = [e for e in spans["draft"] if "beside" in e.tag]
        assert (
            len(beside) == len(ends) and (np.array([e.stop for e in beside]) <= ends + 1e-12).all()
        )
        foreseen = [e.value for e in events if isinstance(e, Level) and e.name == "foreseen"]
        assert abs(np.mean(foreseen) - config.speculation.hit_rate) < 0.1
        assert [e.time for e in events] == sorted(e.time for e in events)
    expected = sum(0.8**k for k in range(5))  # tokens a step: 1 + α + α² + α³ + α⁴
    assert abs(np.mean(rates) - expected) < 0.25


def test_drafts_beside_the_target_are_those_before_it_and_early_exits_are_told(model, draft):
    said = []
    for kind, more in (("draft_model", {}), ("mirror", {"candidates": VOCAB}), ("mirror", {})):
        held, events = speculating(model, draft, pages=300, how={"kind": kind, **more})
        said.append(serve(held, job(np.random.default_rng(2), max_tokens=20)))
        told = [e.value for e in events if isinstance(e, Level) and e.name == "foreseen"]
        if kind == "mirror":
            assert told and min(told) >= 0.0 and max(told) <= 1.0
            assert not more or min(told) == 1.0, "every token is a candidate"
        else:
            assert not told
    assert said[0] == said[1] == said[2]


def test_bad_drafts_are_refused_in_one_line(monkeypatch):
    with pytest.raises(BadInput, match="its vocabulary has 50,257 tokens, that of stdlib-5m 4,096"):
        build(InferenceConfig(speculation={"kind": "draft_model", "model": "gpt2"}))
    with pytest.raises(BadInput, match="a draft of 8 tokens is longer than the cache"):
        engine(pages=2, speculation={"kind": "ngram", "tokens": 8})
    with pytest.raises(BadInput, match="no such folder or name"):
        build(InferenceConfig(speculation={"kind": "draft_model", "model": "nobody"}))
    hybrid = Found("hybrid", small.config("nemotron-h"))
    monkeypatch.setattr(draft_by_name, "find", lambda name: hybrid)
    with pytest.raises(BadInput, match="draft model 'hybrid': keeps a recurrent state"):
        draft_by_name.find_draft("hybrid", Found("plain", small.config("llama-2")))
    many = replace(small.config("llama-2"), streams=Streams(2, 4))
    with pytest.raises(BadInput, match="speculation mirror: not of a model with parallel streams"):
        alone(small_config(speculation="mirror"), many)
