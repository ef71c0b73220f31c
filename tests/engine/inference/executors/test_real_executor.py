"""From a step to tensors: the batch, padding, attention mass."""

import numpy as np
import pytest
import torch

from engine.core.clock import VirtualClock
from engine.core.errors import BadInput
from engine.core.events import Blob
from engine.inference.engine import Engine
from engine.inference.executors.tensors.attention_mass import AttentionProbe
from engine.inference.executors.tensors.gather import gather
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.executors.tensors.sampler import Sampler
from engine.kernels.sample import reference
from engine.models.footprint import step_work
from engine.models.model import Model
from tests.engine.inference.small import TINY, config, request, serve, tiny_model

VOCAB = TINY["vocab_size"]


@pytest.fixture(scope="module")
def model():
    return tiny_model()


class Watched:
    """The real executor, with every step and its batch kept."""

    def __init__(self, executor) -> None:
        self.executor, self.facts = executor, executor.facts
        self.seen: list = []

    def execute(self, step):
        batch, from_S = gather(step, self.executor.storage.scratch)
        self.seen.append((step, batch, from_S))
        return self.executor.execute(step)


def watched(model, **fields):
    chosen, events = config(**fields), []
    executor = Watched(executor_for(chosen, model, "tiny"))
    return Engine(chosen, executor, VirtualClock(), events.append), executor, events


def test_a_batch_names_tokens_positions_slots_and_tables(model):
    held, executor, _ = watched(model, step_tokens=12)
    serve(held, [request(10, n, VOCAB, max_tokens=6) for n in range(3)])
    for step, batch, from_S in executor.seen:
        tokens = int(step.queries_B.sum())
        assert len(batch.tokens_T) == len(batch.positions_T) == len(batch.slots_T) == tokens
        assert batch.query_start_B1[-1] == tokens
        assert len(set(batch.slots_T.tolist())) == tokens, "no two tokens share a slot"
        for b, start in enumerate(step.starts_B.tolist()):
            own = slice(batch.query_start_B1[b], batch.query_start_B1[b + 1])
            assert batch.positions_T[own].tolist() == list(range(start, batch.context_B[b]))
        assert all(a.dtype == np.int32 for a in (batch.tokens_T, batch.slots_T, batch.context_B))
        ends = batch.query_start_B1[step.sample_from_S + 1] - 1
        assert batch.logits_at_R[from_S].tolist() == ends.tolist()


def test_padding_costs_tokens_and_changes_nothing(model):
    held, executor, _ = watched(model, batching="static_batch", pages=200)
    lengths = [3, 9, 5]
    padded = serve(held, [request(8 + n, n, VOCAB, max_tokens=t) for n, t in enumerate(lengths)])
    plain, _, _ = watched(model, pages=200)
    assert padded == serve(
        plain, [request(8 + n, n, VOCAB, max_tokens=t) for n, t in enumerate(lengths)]
    )
    computed = [len(batch.tokens_T) for _, batch, _ in executor.seen]
    assert computed[0] == 3 * 10 and set(computed[1:]) == {3}


@pytest.mark.parametrize("head", [-1, 2])
def test_attention_mass_sums_to_one_for_each_sequence_and_disturbs_nothing(model, head):
    quiet, _, _ = watched(model, pages=32)
    truth = serve(quiet, [request(13, n, VOCAB, max_tokens=10) for n in range(3)])
    held, executor, events = watched(
        model, pages=32, attention_every=2, attention_layer=0, attention_head=head
    )
    assert serve(held, [request(13, n, VOCAB, max_tokens=10) for n in range(3)]) == truth
    sampled = [step for step, _, _ in executor.seen if step.sample_attention]
    blobs = [e for e in events if isinstance(e, Blob)]
    assert len(sampled) == len(blobs) > 3
    for step, blob in zip(sampled, blobs, strict=True):
        mass = held.blobs[blob.ref]
        assert mass.shape == (32,) and mass.sum() == pytest.approx(len(step.rows_B), abs=1e-4)


def test_attention_mass_of_equal_keys_is_spread_evenly(model):
    held, executor, _ = watched(model, pages=32, attention_every=1, attention_layer=0)
    held.add(request(8, 1, VOCAB, max_tokens=2))
    held.step()
    storage = executor.executor.storage
    for layer in storage.kv.tensors:
        layer["k"].zero_()
    step = executor.seen[-1][0]
    probe = AttentionProbe(model, 0, -1)
    mass = probe.mass(step, storage.kv, storage.scratch)
    pages = held.scheduler.rows.table(0)
    np.testing.assert_allclose(mass[pages], [0.5, 0.5], atol=1e-6)
    assert torch.count_nonzero(storage.kv.tensors[1]["k"][:-1]) == 0, "only scratch is written"


@pytest.mark.parametrize("layer", [0, 1])
def test_attention_mass_of_a_fused_model_is_the_plain_models(model, layer):
    held, executor, _ = watched(model, pages=32)
    serve(held, [request(13, n, VOCAB, max_tokens=10) for n in range(3)])
    storage, step = executor.executor.storage, executor.seen[-1][0]
    plain = Model(model.config, model.weights, plain=True)
    assert model.fused is not None and plain.fused is None
    masses = [AttentionProbe(m, layer, -1).mass(step, storage.kv, storage.scratch)
              for m in (model, plain)]  # fmt: skip
    np.testing.assert_allclose(*masses, atol=1e-5)
    assert np.ptp(masses[0][masses[0] > 0]) > 0.01, "not spread evenly"


def test_a_plain_model_is_sampled_without_kernels_and_says_what_it_would_with_them(model):
    plain, answers = Model(model.config, model.weights, plain=True), []
    for compiled in (False, True):
        held, executor, _ = watched(plain)
        if compiled:
            executor.executor.sample = Sampler(compiled=True)
        else:
            assert executor.executor.sample.draw is reference.sample
        wishes = {}, {"temperature": 1.0, "seed": 5}, {"temperature": 0.8, "top_p": 0.7}
        asked = [request(10, n, VOCAB, **wish) for n, wish in enumerate(wishes)]
        answers.append(serve(held, asked))
    assert answers[0] == answers[1]


def test_a_layer_the_model_has_not_is_bad_input(model):
    with pytest.raises(BadInput, match="2 layers of 4 heads"):
        executor_for(config(attention_every=1, attention_layer=9), model, "tiny")


def test_the_work_told_of_a_step_is_the_exact_one(model):
    held, executor, events = watched(model, step_tokens=12)
    told = []
    inner = executor.executor.execute
    executor.executor.execute = lambda step: told.append(inner(step)) or told[-1]
    serve(held, [request(10, n, VOCAB, max_tokens=3) for n in range(3)])
    for result, (step, batch, _) in zip(told, executor.seen, strict=True):
        rows = len(batch.logits_at_R)
        exact = step_work(
            model.config, step.queries_B, step.contexts_B, dtype="float32", logits=rows
        )
        assert result.flops == pytest.approx(sum(op.flops for op in exact))
        assert result.bytes == pytest.approx(sum(op.bytes for op in exact))
