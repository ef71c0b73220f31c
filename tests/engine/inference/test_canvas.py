"""Blocks of masks in the serving loop: what the engine decides is what a loop of their own would,
token for token, whatever they are scheduled with.
"""

from dataclasses import replace
from itertools import product

import numpy as np

from engine.core.config import kinds
from engine.core.events import Blob, Branch, Span, Token
from engine.diffusion.joints import MASK, Joint
from engine.diffusion.model import Masked
from engine.inference import canvas_outputs
from engine.inference.canvas_outputs import GRID
from engine.inference.policies.unmasking import Confidence, Fixed, Unmasking
from engine.inference.requests.canvas import Canvas
from engine.inference.requests.request import Request, sampling
from tests.engine.diffusion.loop import decode
from tests.engine.inference.memory import said_at
from tests.engine.inference.small import (
    engine,
    real_engine,
    request,
    serve,
    states,
    tiny_model,
)

POLICIES = [
    policy(tokens=count) if issubclass(policy, Fixed) else policy()
    for policy, count in product(kinds(Unmasking).values(), (1, 3))
]

BATCHINGS = ["decode_first", "prefill_first", "static_batch", "one_instance", "temporal_fusion"]


def masked(length: int, places: int, draw: int, policy: Unmasking | None = None, **wish) -> Request:
    made = request(length, draw, max_tokens=places, **{"temperature": 1.0, "seed": draw, **wish})
    made.canvas = Canvas(MASK, policy or POLICIES[draw % len(POLICIES)])
    return made


class Hashed:
    """What page memory says, of texts by themselves."""

    def __call__(self, joint: Joint, answers_NL: np.ndarray, revealed_NL: np.ndarray) -> np.ndarray:
        texts_NT = joint.canvas(answers_NL, revealed_NL)
        return np.stack([said_at(text_T, answers_NL.shape[1]) for text_T in texts_NT])


def by_itself(one: Request) -> tuple[list[int], int]:
    """The answer of a loop that knows nothing but this text, and its steps."""
    joint = Joint(one.prompt, np.zeros((1, one.sampling.max_tokens), np.int64))
    steps = list(decode(Hashed(), one.canvas.unmasking, joint, 1, one.sampling.seed))
    return steps[-1].texts_NL[0].tolist(), len(steps)


def test_answers_are_those_of_a_loop_of_their_own_under_random_schedules(full):
    """With ordinary requests beside them, which say what they say without."""
    preempted = swapped = 0
    for seed in range(500 if full else 60):
        chance = np.random.default_rng(seed)
        held, events = engine(
            pages=int(chance.integers(12, 40)), page_size=int(chance.choice([1, 2, 4])),
            host_pages=int(chance.choice([0, 50])),
            preemption=str(chance.choice(["recompute", "swap"])),
            max_running=int(chance.integers(1, 8)), step_tokens=int(chance.integers(12, 40)),
            batching=str(chance.choice(BATCHINGS)),
            ordering=str(chance.choice(["fcfs", "shortest_first", "priority"])),
        )  # fmt: skip
        coming = []
        for number in range(10):
            draw, priority = 100 * seed + number, int(chance.integers(3))
            if chance.random() < 0.6:
                one = masked(
                    int(chance.integers(1, 6)), int(chance.integers(1, 7)), draw, ignore_eos=True
                )
            else:
                one = request(int(chance.integers(1, 12)), draw, max_tokens=6, ignore_eos=True)
            one.priority = priority
            coming.append(one)
        for one in coming:
            held.add(one)
            for _ in range(int(chance.integers(3))):
                held.step()
            rows = held.scheduler.running.requests
            if rows and chance.random() < 0.5:
                view = held.scheduler.view(held.number, held.clock.now())
                able = [r for r in rows if not r.over]
                if able:
                    held.scheduler.preempt(able[int(chance.integers(len(able)))], view, "a test")
        held.run()
        for one in coming:
            assert one.state in ("finished", "rejected"), (seed, one)
            if one.state == "rejected":  # the whole cache is smaller
                assert "whole cache" in one.reason or "at once" in one.reason
            elif one.canvas is not None:
                assert (one.generated.tolist(), one.canvas.steps) == by_itself(one), seed
                preempted += "preempted" in states(events, one.id)
                assert "swapped" not in states(events, one.id), "nothing of it is kept"
            else:
                alone, _ = engine(pages=200)
                again = Request(one.prompt, one.sampling)
                assert serve(alone, [again]) == [one.generated.tolist()], seed
                swapped += "swapped" in states(events, one.id)
        assert held.cache.held == 0
    assert preempted and swapped, "nobody was preempted"


def test_many_texts_of_other_lengths_share_a_step():
    held, events = engine(pages=64, step_tokens=64)
    serve(held, [masked(3 + draw, 2 + draw, draw, Confidence(tokens=1)) for draw in range(4)])
    spans = [e for e in events if isinstance(e, Span) and e.name == "step"]
    assert len(spans) == 5, "the longest block has so many places"
    assert spans[0].tag == "decode=0 prefill=32"
    unmasked = [e for e in events if isinstance(e, Span) and e.name == "unmask"]
    assert [(e.lane, e.tag) for e in unmasked[:2]] == [("r0", "0:5"), ("r1", "0:7")]


def test_events_tell_what_was_decided_when_with_scores():
    held, events = engine()
    one = masked(4, 5, 7, Confidence(tokens=2))
    (answer,) = serve(held, [one])
    grids = [held.blobs[e.ref] for e in events if isinstance(e, Blob)]
    names = [e.name for e in events if isinstance(e, Blob)]
    assert names == [f"{GRID}/r0/{step}" for step in range(3)]
    assert [int(grid[2].sum()) for grid in grids] == [2, 2, 1]
    assert sum(grid[2] for grid in grids).tolist() == [1.0] * 5, "once decided stays"
    assert grids[-1][1].tolist() == answer and (grids[0][1] == MASK).sum() == 3
    best = np.argsort(-grids[0][0], kind="stable")[:2]
    assert sorted(np.flatnonzero(grids[0][2])) == sorted(best)
    said = dict(e.text.strip().split(":") for e in events if isinstance(e, Token))
    assert [int(said[str(place)]) for place in range(5)] == answer
    assert all(e.logprob < 0 for e in events if isinstance(e, Token))


def test_nothing_of_a_text_with_masks_is_shared():
    """Its keys and values have seen the masks behind them."""
    held, events = engine(page_size=2)
    first, second = masked(8, 4, 3), masked(8, 4, 3)
    plain = Request(first.prompt, sampling(max_tokens=4, ignore_eos=True))
    serve(held, [first])
    serve(held, [second, plain])
    assert first.generated.tolist() == second.generated.tolist()
    assert first.reused == second.reused == plain.reused == 0


def test_an_end_token_ends_it_once_all_before_it_is_decided():
    _, (free,) = None, serve(engine()[0], [masked(4, 6, 11, Confidence())])
    place = 3
    end = free[place]
    cut = free[: free.index(end) + 1]
    one = masked(4, 6, 11, Confidence(), stop_tokens=(end,))
    (answer,) = serve(engine()[0], [one])
    assert (answer, one.reason) == (cut, "stop")
    ended, _ = engine(eos=(end,))
    one = masked(4, 6, 11, Confidence())
    assert serve(ended, [one]) == [cut] and one.reason == "stop"
    one = masked(4, 6, 11, Confidence(), ignore_eos=True)
    assert serve(engine(eos=(end,))[0], [one]) == [free] and one.reason == "length"


def test_listeners_hear_it_from_left_to_right():
    heard, one = [], masked(4, 6, 5, Confidence())
    one.on_token = lambda request, token, text, logprob: heard.append((token, text, logprob))
    (answer,) = serve(engine()[0], [one])
    assert [token for token, _, _ in heard] == answer
    assert "".join(text for _, text, _ in heard) == one.text
    stopping = masked(4, 6, 5, Confidence(), stop=(f" {answer[2]}",))
    serve(engine()[0], [stopping])
    assert stopping.reason == "stop" and len(stopping.generated) <= 3


def test_temperature_0_takes_the_likeliest():
    one = masked(4, 5, 9, Confidence(tokens=5), temperature=0.0)
    (answer,) = serve(engine()[0], [one])
    text_T = np.append(one.prompt, [MASK] * 5)
    assert answer == said_at(text_T, 5).argmax(-1).tolist()


def test_an_abort_gives_its_pages_back_and_a_fork_is_refused():
    held, events = engine()
    one = masked(4, 6, 1, Confidence())
    held.add(one)
    held.step()
    child = held.fork("r0")
    held.step()
    refused = [e for e in events if isinstance(e, Branch) and e.thread == child][-1]
    assert (refused.state, refused.why) == ("rejected", "a block of masks has one answer")
    held.abort("r0")
    held.run()
    assert one.state == "aborted" and held.cache.held == 0 and not held.busy


def test_of_a_masked_model_every_answer_is_a_block():
    held, _ = engine(unmasking={"kind": "confidence", "tokens": 2})
    held.executor.facts = replace(held.executor.facts, mask=(MASK,))
    plain, own = request(4, 3, max_tokens=5, temperature=1.0, seed=3), masked(4, 5, 3)
    own.canvas.unmasking = Confidence(tokens=2)
    first, second = serve(held, [plain, own])
    assert first == second == by_itself(own)[0] and plain.canvas.steps == 3


def test_of_a_real_model_neither_blocks_nor_ordinary_rows_mind_one_another(full):
    """In batches, chunks and preempted: blocks are those of plain torch by themselves, ordinary
    rows and all log-probabilities the same bits as alone."""
    model = tiny_model()
    plain = Masked(model.config, dict(model.weights))
    for seed in range(10 if full else 2):
        room = {"pages": 40, "page_size": 4, "step_tokens": 40, "max_running": 8}
        held, events = real_engine(model, **room)
        asked = []
        for number in range(10):
            draw = 50 * seed + number
            if number % 2:
                one = masked(2 + draw % 7, 1 + draw % 6, draw, ignore_eos=True)
            else:
                one = request(5 + draw % 30, draw, 211, max_tokens=9, ignore_eos=True, logprobs=1)
            asked.append(one)
            held.add(one)
            held.step()
            for who in list(held.scheduler.running.requests) if number in (3, 7) else ():
                view = held.scheduler.view(held.number, held.clock.now())
                held.scheduler.preempt(who, view, "a test says so")
        held.run()
        moved = {e.thread for e in events if isinstance(e, Branch) and e.state == "preempted"}
        assert {one.canvas is None for one in asked if one.id in moved} == {True, False}
        for one in asked:
            canvas = one.canvas and Canvas(MASK, one.canvas.unmasking)
            alone = Request(one.prompt, one.sampling, canvas=canvas)
            serve(real_engine(model, pages=100)[0], [alone])
            assert one.generated.tolist() == alone.generated.tolist(), seed
            if canvas is None:
                assert one.logprobs == alone.logprobs
                continue
            assert (one.canvas.logprobs_L == canvas.logprobs_L).all()
            joint = Joint(one.prompt, np.zeros((1, one.sampling.max_tokens), np.int64))
            steps = list(decode(plain, canvas.unmasking, joint, 1, one.sampling.seed))
            assert one.generated.tolist() == steps[-1].texts_NL[0].tolist()


def test_grids_of_a_long_run_end_while_its_tokens_go_on(monkeypatch):
    monkeypatch.setattr(canvas_outputs, "MOST", 3 * 5 * 4)
    held, events = engine()
    serve(held, [masked(4, 5, draw, Confidence()) for draw in range(3)])
    assert sum(isinstance(e, Blob) for e in events) == len(held.blobs) == 4
    assert sum(isinstance(e, Token) for e in events) == 15
