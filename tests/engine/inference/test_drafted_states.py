"""Speculation changes no answer of families with a recurrent state or an index of tokens.

Their sums go by the batch's size, so that float32 agrees to rounding only: here they compute in
float64, where no two tokens come as near to one another as that, and answers are held token for
token to each request alone.
"""

import numpy as np
import pytest

from engine.core.events import Span, Token
from engine.inference.engine import Engine
from engine.models.model import Model
from tests.engine.inference.small import real_engine, request, serve
from tests.engine.inference.test_speculation import job, schedule, speculating
from tests.engine.models import small

FAMILIES = [name for name in small.CONFIGS if name not in small.EXACT]
RECURRENT = [name for name in FAMILIES if any(small.CONFIGS[name].recurrent)]
PARTS = 2
QUICK = {("qwen3-next", 0), ("nemotron-h", 1), ("deepseek-v3.2", 0)}  # without --full
KINDS = ("ngram", "draft_model", "mirror")
Texts = list[list[int]]


def model_of(family: str, dtype: str = "float64") -> Model:
    config = small.config(family, max_position_embeddings=128)
    return Model(config, small.weights(config), dtype)


@pytest.fixture(scope="module")
def draft() -> Model:
    """It attends alone, and takes the same tokens."""
    return model_of("llama-3", "float32")


def plain(model: Model, seed: int) -> tuple[Texts, Texts]:
    """The answers of a job, each request alone and without drafts, and the whole texts."""
    requests = job(np.random.default_rng(seed), model.config.vocab)
    answers = [
        serve(real_engine(model, pages=200, prefix_sharing=False)[0], [one])[0] for one in requests
    ]
    texts = [[*r.prompt.tolist(), *said] for r, said in zip(requests, answers, strict=True)]
    return answers, texts


def foretelling(held: Engine, texts: Texts, right: float, seed: int = 0) -> None:
    """Let the engine's draft model say what the answer will, with probability `right` a token: one
    of random weights is nearly always wrong."""
    drafter, draw = held.executor.drafter, np.random.default_rng(seed)
    draws = drafter.draft

    def draft(step):
        drawn = draws(step)
        drafts_B = 0 * step.queries_B if step.drafts_B is None else step.drafts_B
        for row, count in zip(step.rows_B.tolist(), drafts_B.tolist(), strict=True):
            known, prompt = int(step.rows.known[row]), step.requests[row].prompt.tolist()
            text = next(text for text in texts if text[: len(prompt)] == prompt)
            for at in range(known, known + count):
                if draw.random() < right:
                    step.rows.tokens[row, at] = text[at]
        return drawn

    drafter.draft = draft


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_answers_are_the_plain_ones_under_any_schedule(family, part, draft, full):
    """500 schedules with --full: batches, chunks, few pages, prefixes, preemption and swaps; with
    an index trees of drafts, too."""
    if not full and (family, part) not in QUICK:
        pytest.skip("with --full")
    model, kept, most = model_of(family), 0, -(-500 // (PARTS * len(FAMILIES)))
    for seed in range(1000 * part, 1000 * part + (most if full else 2)):
        fields = schedule(np.random.default_rng(seed))
        kind = KINDS[(seed + 1) % len(KINDS)]
        fields["how"]["kind"] = kind
        if kind == "ngram" and family not in RECURRENT:
            fields["how"]["branches"] = 2
        answers, texts = plain(model, seed)
        held, events = speculating(model, None if kind == "ngram" else draft, **fields)
        if kind != "ngram":
            foretelling(held, texts, 0.8, seed)
        requests = job(np.random.default_rng(seed), model.config.vocab)
        held.prepare(requests)
        assert serve(held, requests) == answers, f"seed {seed}: {kind} {fields}"
        assert held.cache.held == 0, f"seed {seed}: pages are held by nobody"
        if (states := held.cache.states) is not None:
            assert states.pool.total - states.pool.free == len(states.kept), f"seed {seed}: states"
        kept += sum(told(events, "kept="))
    assert kept > 10 * (most if full else 2), "hardly a draft was kept"


def told(events: list, name: str) -> list[int]:
    """Numbers that steps say of their drafts."""
    tags = [e.tag.split() for e in events if isinstance(e, Span) and e.name == "verify"]
    return [int(part[len(name) :]) for tag in tags for part in tag if part.startswith(name)]


@pytest.mark.parametrize("family", RECURRENT)
def test_drafts_that_hold_are_fed_once_more_and_no_state_is_added(family, draft):
    model, wish = model_of(family), {"max_tokens": 36, "ignore_eos": True}
    alone, events = real_engine(model)
    answer = serve(alone, [request(9, 4, 97, **wish)])
    texts = [[*request(9, 4, 97).prompt.tolist(), *answer[0]]]
    held, events = speculating(model, draft, pages=300, how={"kind": "draft_model", "tokens": 5})
    foretelling(held, texts, 1.0)
    fed, execute = [], held.executor.execute

    def counted(step):
        fed.append(int(step.queries_B.sum()))
        assert (
            held.cache.states.pool.total - held.cache.states.pool.free <= 3
        )  # and two of prefixes
        return execute(step)

    held.executor.execute = counted
    assert serve(held, [request(9, 4, 97, **wish)]) == answer
    assert all(e.accepted for e in events if isinstance(e, Token))
    # The prompt; one token and five drafts; then six tokens, of which five were fed before.
    assert fed == [9, 6, 11, 11, 11, 11, 10]
