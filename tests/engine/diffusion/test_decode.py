"""Errors of masked-diffusion decoding: exact, and never below what tokens drawn apart must lose."""

import math

import numpy as np
import pytest
import torch

from engine.core.clock import VirtualClock
from engine.core.config import kinds
from engine.core.events import Token
from engine.core.log import Log
from engine.core.run import Live
from engine.diffusion.distance import distance
from engine.diffusion.joints import ITEMS, MASK, TASKS, VOCAB, WORDS, Joint, draw
from engine.diffusion.model import Exact, bidirectional, load_masked
from engine.diffusion.run import DiffusionConfig, joints, predictor, run
from engine.inference.canvas_outputs import GRID
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.policies.unmasking import (
    Confidence,
    EntropyBound,
    Factor,
    RandomOrder,
    Threshold,
    Unmasking,
)
from engine.inference.requests.canvas import Canvas
from engine.inference.requests.request import Request, sampling
from engine.models.batch import Batch
from engine.models.kv import PagedKV
from engine.models.model import Model
from tests.engine.diffusion.loop import decode

TWINS = Joint(np.array([MASK]), np.array([[0, 0], [1, 1]]))  # two tokens, always the same


class Wrong:
    """A model that is wrong about everything: marginals mixed with noise of its own."""

    def __call__(self, joint, answers_NL, revealed_NL):
        p_NLV = Exact()(joint, answers_NL, revealed_NL)
        noise_NLV = np.random.default_rng(int(revealed_NL.sum())).random(p_NLV.shape)
        mixed_NLV = p_NLV + 0.3 * noise_NLV
        return mixed_NLV / mixed_NLV.sum(-1, keepdims=True)


def test_two_tokens_that_are_always_the_same():
    once = distance(Exact(), Confidence(tokens=2), TWINS)
    assert once.error == pytest.approx(math.log(2)) == pytest.approx(once.bound)
    assert once.valid == pytest.approx(0.5) and once.steps == 1
    twice = distance(Exact(), Confidence(tokens=1), TWINS)
    assert (twice.error, twice.bound, twice.valid, twice.steps) == pytest.approx((0, 0, 1, 2))
    assert distance(Exact(), Confidence(tokens=2), TWINS, peeks=True).error == pytest.approx(0)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", kinds(Unmasking))
def test_no_error_is_below_its_bound_and_the_joint_itself_meets_it(task, kind):
    for seed, length in enumerate((2, 3, 4)):
        policy = kinds(Unmasking)[kind]()
        if "tokens" in type(policy).model_fields:
            policy = policy.model_copy(update={"tokens": 2})
        joint = draw(task, length, np.random.default_rng(seed))
        exact, wrong = (distance(model, policy, joint, seed) for model in (Exact(), Wrong()))
        assert exact.error == pytest.approx(exact.bound, abs=1e-9)
        assert wrong.error > wrong.bound + 0.1


def test_closed_forms_of_what_hangs_together():
    """All at once: n log n - log n! of a shuffle, (n - 1) log n of one item throughout."""
    for length in (2, 4, 5):
        every = Confidence(tokens=64)
        bounds = {
            task: distance(Exact(), every, draw(task, length, np.random.default_rng(1))).bound
            for task in TASKS
        }
        n = length
        assert bounds["copy"] == bounds["replace_index"] == pytest.approx(0)
        assert bounds["shuffle"] == pytest.approx(n * math.log(n) - math.lgamma(n + 1))
        assert bounds["same"] == pytest.approx((n - 1) * math.log(n))
        assert bounds["replace_random"] == pytest.approx(-(n - 1) * math.log(1 - 1 / n))


def test_fewer_tokens_a_step_never_raise_the_bound():
    joint = draw("shuffle", 5, np.random.default_rng(0))
    bounds = [distance(Exact(), RandomOrder(tokens=k), joint).bound for k in range(1, 6)]
    assert bounds == sorted(bounds) and bounds[0] == pytest.approx(0)


def test_drawn_answers_are_as_often_valid_as_counted():
    joint, policy = draw("shuffle", 3, np.random.default_rng(0)), Confidence(tokens=2)
    steps = list(decode(Exact(), policy, joint, 2000, seed=1))
    texts_NL = steps[-1].texts_NL
    right = (texts_NL[:, None] == joint.answers_SL[None]).all(-1).any(1).mean()
    assert abs(right - distance(Exact(), policy, joint).valid) < 0.05
    assert [int(step.chosen_NL.sum()) for step in steps] == [4000, 2000]
    assert sum(step.chosen_NL.astype(int) for step in steps).max() == 1, "once decided stays"


def test_thresholds_and_factors_take_what_they_are_sure_of():
    scores_NL = np.array([[0.95, 0.4, 0.92, 0.1], [0.3, 0.2, 0.1, 0.05]])
    masked_NL = np.array([[True, True, True, True], [False, True, True, True]])
    taken = Threshold(least=0.9).choose(scores_NL, masked_NL)
    assert taken.tolist() == [[True, False, True, False], [False, True, False, False]]
    taken = Factor(factor=0.3).choose(scores_NL, masked_NL)
    assert taken.tolist() == [[True, False, True, False], [False, True, False, False]]


@pytest.mark.parametrize("task", TASKS)
def test_a_bound_of_entropy_bounds_what_each_step_loses(task):
    for nats in (0.0, 0.3, 1.0):
        told = distance(Exact(), EntropyBound(nats=nats), draw(task, 4, np.random.default_rng(2)))
        assert told.bound <= told.steps * nats + 1e-9
    all_at_once = distance(
        Exact(), EntropyBound(nats=64.0), draw(task, 4, np.random.default_rng(2))
    )
    assert all_at_once.steps == 1


def test_words_are_as_many_as_tokens():
    assert len(WORDS) == VOCAB and WORDS[MASK] == "□" and WORDS[ITEMS] == "@0"


def test_paged_attention_sees_both_ways_where_every_token_is_a_row_of_its_own():
    masked, length, size = load_masked(), 12, 8
    tokens_NT = torch.arange(2 * length).view(2, length) % VOCAB
    tables = np.array([[3, 1], [0, 2]], np.int32)
    at_T = np.tile(np.arange(length, dtype=np.int32), 2)
    rows = np.repeat(np.arange(2), length)
    batch = Batch(
        tokens_T=tokens_NT.flatten().numpy().astype(np.int32),
        positions_T=at_T,
        slots_T=(tables[rows, at_T // size] * size + at_T % size).astype(np.int32),
        query_start_B1=np.arange(2 * length + 1, dtype=np.int32),
        context_B=np.full(2 * length, length, np.int32),
        block_table_BP=tables[rows],
        logits_at_R=np.arange(2 * length, dtype=np.int32),
    )
    model = Model(masked.config, masked.weights, plain=True)
    logits_RV = model.forward(batch, PagedKV(model.spec, 4, size))
    whole_NTV = bidirectional(masked.config, masked.weights, tokens_NT)
    torch.testing.assert_close(logits_RV, whole_NTV.flatten(0, 1), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("room", [{"pages": 64}, {"pages": 9, "max_running": 6}])
def test_the_serving_engine_decides_what_a_loop_of_its_own_does(room, full):
    """The shipped model over pages, in batches and preempted, against one text at a time in plain
    torch: the same tokens in as many steps."""
    masked, policies = load_masked(), [make() for make in kinds(Unmasking).values()]
    model = Model(masked.config, masked.weights)
    for seed in range(20 if full else 4):
        chance = np.random.default_rng(seed)
        joints = [draw(TASKS[i % 5], 2 + i % 5, chance) for i in range(10)]
        served = InferenceConfig(**{"page_size": 4, "step_tokens": 64, "max_running": 5, **room})
        executor = executor_for(served, model, "lists")
        engine = Engine(served, executor, VirtualClock(), [].append)
        asked = []
        for number, joint in enumerate(joints):
            length = joint.answers_SL.shape[1]
            wish = sampling(max_tokens=length, temperature=1.0, ignore_eos=True, seed=seed + number)
            canvas = Canvas(MASK, policies[(seed + number) % len(policies)])
            asked.append(Request(joint.prompt.astype(np.int32), wish, canvas=canvas))
            engine.add(asked[-1])
            engine.step()
            running = engine.scheduler.running.requests
            if len(running) > 1 and number % 3 == 0:
                view = engine.scheduler.view(engine.number, 0.0)
                engine.scheduler.preempt(running[0], view, "a test says so")
        engine.run()
        for number, (joint, one) in enumerate(zip(joints, asked, strict=True)):
            steps = list(decode(masked, one.canvas.unmasking, joint, 1, seed + number))
            assert one.generated.tolist() == steps[-1].texts_NL[0].tolist()
            assert one.canvas.steps == len(steps)


@pytest.mark.parametrize("fault", ["none", "peeks", "causal"])
@pytest.mark.parametrize("model", ["trained", "exact"])
def test_a_run_draws_what_a_loop_of_its_own_does(fault, model):
    config = DiffusionConfig(
        model=model, fault=fault, prompts=3, length=4, unmasking=Confidence(tokens=2), at_once=2
    )
    live = Live(Log())
    run(config, live)
    for number, joint in enumerate(joints(config)):
        peeks = fault == "peeks"
        steps = list(
            decode(predictor(config), config.unmasking, joint, 1, config.seed + number, peeks)
        )
        said = {}
        for event in live.log.of(Token):
            if event.thread == f"r{number}":
                place, _, word = event.text.strip().partition(":")
                said[int(place)] = word
        assert [said[place] for place in range(4)] == [WORDS[t] for t in steps[-1].texts_NL[0]]
        grids = [live.log.blobs[f"{GRID}/r{number}/{n}"] for n in range(len(steps) * (1 + peeks))]
        assert sum(grid[2] for grid in grids).tolist() == [1.0] * 4
        if not peeks:
            for grid, step in zip(grids, steps, strict=True):
                np.testing.assert_allclose(grid[0], step.scores_NL[0], atol=1e-5)


class Guided:
    """Two passes of plain torch: the text, and that behind a negative prompt."""

    def __init__(self, masked, negative, weight):
        self.masked, self.negative, self.weight = masked, negative, weight

    def __call__(self, joint, answers_NL, revealed_NL):
        own, other = (
            torch.from_numpy(Joint(prompt, joint.answers_SL).canvas(answers_NL, revealed_NL))
            for prompt in (joint.prompt, self.negative)
        )
        count, logits = answers_NL.shape[1], []
        for tokens_NT in (own, other):
            said = bidirectional(self.masked.config, self.masked.weights, tokens_NT.long())
            logits.append(said[:, -count:])
        steered_NLV = logits[1] + self.weight * (logits[0] - logits[1])
        return steered_NLV.double().softmax(-1).numpy()


def test_guided_blocks_are_steered_away_from_their_negative_prompts():
    """Beside blocks that are not, in pages of one size and another, longer and shorter prompts."""
    masked, served = load_masked(), InferenceConfig(page_size=4, pages=40, step_tokens=96)
    engine = Engine(
        served, executor_for(served, Model(masked.config, masked.weights), "lists"),
        VirtualClock(), [].append,
    )  # fmt: skip
    chance, asked, changed = np.random.default_rng(3), [], 0
    for number in range(10):
        joint = draw(TASKS[number % 5], 3 + number % 4, chance)
        length, weight = joint.answers_SL.shape[1], (1.0, 2.5, 0.5)[number % 3]
        negative = np.full(len(joint.prompt) - number % 2, MASK, np.int32)
        wish = sampling(
            max_tokens=length, temperature=1.0, ignore_eos=True, seed=number, guidance=weight
        )
        one = Request(joint.prompt.astype(np.int32), wish, negative=negative)
        asked.append((joint, one, weight))
        engine.add(one)
    engine.run()
    for number, (joint, one, weight) in enumerate(asked):
        predict = masked if weight == 1.0 else Guided(masked, one.negative.astype(np.int64), weight)
        steps = list(decode(predict, Confidence(), joint, 1, number))
        assert one.generated.tolist() == steps[-1].texts_NL[0].tolist(), number
        plain = list(decode(masked, Confidence(), joint, 1, number))
        changed += one.generated.tolist() != plain[-1].texts_NL[0].tolist()
    assert changed, "guidance that changes nothing"
