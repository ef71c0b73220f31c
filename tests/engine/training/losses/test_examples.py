"""Training on examples: packing changes nothing, masks and positions count, runs resume exactly."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.core.clock import WallClock
from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Level
from engine.models.reference import dense
from engine.recipes.recipe import Recipe
from engine.training.data.packing import Example, completed, packs, spoken
from engine.training.losses.examples import (
    example_loss,
    logits_of,
    train_examples,
    weighted_loss,
)
from engine.training.losses.language import Training, fresh_weights

LEARNS = Training(
    steps=20, warmup=2, decay=5, rate=1e-2, tokens=64, context=16, long_context=16,
    report=2, evaluate=10, checkpoint=5, precision="float32",
)  # fmt: skip
TINY = Recipe(
    name="tiny", entries=258, hidden=32, layers=2, heads=2, kv_heads=1, head_dim=16, width=64,
    training=LEARNS,
)  # fmt: skip


@pytest.fixture(scope="module")
def weights():
    # Louder than a start of training, so that attention and positions matter.
    fresh = fresh_weights(TINY.model(), 0)
    return {name: w * (8 if w.ndim > 1 else 1) for name, w in fresh.items()}


def counting(number: int) -> Example:
    """Count on from a prompt; numbers near each other give different examples."""
    first, length = number % 40 + 2, number % 5 + 2
    return completed([first, first + 1], range(first + 2, first + 2 + length))


def alone(weights, example: Example) -> torch.Tensor:
    """Logits at an example's predictions without packing."""
    kept = {} if example.visible_TT is None else {
        "visible_BTS": torch.from_numpy(example.visible_TT)[None]
    }  # fmt: skip
    if example.positions_T is not None:
        kept["positions_BT"] = torch.from_numpy(example.positions_T)[None]
    tokens = torch.from_numpy(example.tokens_T)[None]
    return dense(TINY.model(), weights, tokens, **kept)[0, torch.from_numpy(example.at_L)]


def tree() -> Example:
    """A trunk of two tokens and two branches that share positions and do not see each other."""
    visible = np.tri(6, dtype=bool)
    visible[4:, 2:4] = False
    return Example(
        np.array([5, 6, 7, 8, 9, 10]),
        np.array([0, 1, 1, 2, 4]),
        np.array([6, 7, 9, 8, 10]),
        np.ones(5, np.float32),
        np.array([0, 1, 2, 3, 2, 3]),
        visible,
    )


def test_packed_examples_say_what_each_says_alone(weights):
    examples = [counting(3), tree(), counting(11), counting(2), tree(), counting(7)]
    (packed,) = packs(examples, 8, 16)
    assert len(packed.tokens_BS) == 3
    together = logits_of(TINY.model(), weights, packed)
    apart = torch.cat([alone(weights, example) for example in examples])
    torch.testing.assert_close(together, apart, rtol=1e-5, atol=1e-5)
    blind = packed.visible_BSS.clone()
    packed.visible_BSS[:] = torch.ones(16, 16).tril().bool()
    assert not torch.allclose(logits_of(TINY.model(), weights, packed), apart, atol=1e-2)
    packed.visible_BSS[:] = blind


def test_a_tree_is_its_paths(weights):
    """Loss and gradients on branches with one trunk are those of the paths read one by one."""
    paths = [[5, 6, 7, 8], [5, 6, 9, 10]]
    shared = [spoken(path, [0.0, 0.5, 1.0, 1.0]) for path in paths]  # the trunk counted once
    found = []
    for examples in ([tree()], shared):
        own = {name: w.clone().requires_grad_() for name, w in weights.items()}
        (packed,) = packs(examples, 2, 16)
        loss = weighted_loss(TINY.model(), own, packed)
        found.append((loss, torch.autograd.grad(loss, list(own.values()))))
    torch.testing.assert_close(found[0][0], found[1][0])
    for one, other in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_only_the_completion_is_learnt(weights):
    example = completed([2, 3, 4], [5, 6])
    assert example.target_L.tolist() == [5, 6] and example.at_L.tolist() == [2, 3]
    (packed,) = packs([example], 1, 16)
    logits = dense(TINY.model(), weights, torch.tensor([[2, 3, 4, 5, 6]]))[0, 2:4]
    expected = F.cross_entropy(logits, torch.tensor([5, 6]))
    torch.testing.assert_close(weighted_loss(TINY.model(), weights, packed), expected)


def test_no_example_is_lost_between_packs(weights):
    examples = [counting(number) for number in range(37)]
    targets = [packed.target_L for packed in packs(examples, 2, 16)]
    assert torch.cat(targets).tolist() == [t for e in examples for t in e.target_L.tolist()]
    whole = example_loss(TINY.model(), weights, examples, 16)
    nats = [
        F.cross_entropy(alone(weights, e), torch.from_numpy(e.target_L), reduction="sum").item()
        for e in examples
    ]
    assert whole == pytest.approx(sum(nats) / sum(len(e.target_L) for e in examples), rel=1e-4)


def test_an_example_longer_than_a_row_is_refused():
    with pytest.raises(BadInput, match="17 tokens does not fit a window of 16"):
        list(packs([spoken(range(17), [True] * 17)], 1, 16))


def run(recipe: Training, checkpoint: Path | None = None):
    events: list[AnyEvent] = []
    weights = train_examples(
        TINY.model(),
        recipe,
        counting,
        emit=events.append,
        clock=WallClock(),
        checkpoint=checkpoint,
        held_out=[counting(n) for n in range(5)],
        scores=lambda weights: {"success": 0.5},
    )
    return weights, events


def levels(events: list[AnyEvent], name: str) -> list[float]:
    return [e.value for e in events if isinstance(e, Level) and e.name == name]


def test_the_loss_falls_and_a_resumed_run_is_the_uninterrupted_one(tmp_path):
    whole, told = run(LEARNS)
    losses = levels(told, "loss")
    assert losses[-1] < 0.7 * losses[0]
    assert levels(told, "validation_loss")[-1] < levels(told, "validation_loss")[0] < losses[0]
    assert levels(told, "success") == [0.5, 0.5]
    checkpoint = tmp_path / "checkpoint.safetensors"
    run(update(LEARNS, {"steps": 10, "decay": 0}), checkpoint)
    resumed, rest = run(LEARNS, checkpoint)
    assert levels(rest, "loss") == losses[5:]
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    other, _ = run(update(LEARNS, {"seed": 1}))
    assert not all(torch.equal(whole[name], other[name]) for name in whole)
