"""Training a tiny model: the loss falls, and a resumed run is the uninterrupted one."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.core.clock import WallClock
from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Level, Mark, Span
from engine.models.reference import dense
from engine.recipes.recipe import Recipe
from engine.training.loop.precision import narrow, products
from engine.training.losses.language import Training, fresh_weights, train

TINY = Recipe(
    name="tiny",
    entries=258,
    hidden=32,
    layers=2,
    heads=2,
    kv_heads=1,
    head_dim=16,
    width=64,
    training=Training(
        steps=30,
        warmup=3,
        decay=10,
        rate=1e-2,
        tokens=128,
        context=16,
        long_context=32,
        report=5,
        evaluate=15,
        checkpoint=10,
    ),
)
STREAM = np.tile(np.arange(2, 50, dtype=np.uint16), 40)  # counting: easy to learn
HELD_OUT = STREAM[:200]


def run(
    recipe: Training, checkpoint: Path | None = None
) -> tuple[dict[str, Tensor], list[AnyEvent]]:
    events: list[AnyEvent] = []
    weights = train(
        TINY.model(),
        recipe,
        STREAM,
        HELD_OUT,
        emit=events.append,
        clock=WallClock(),
        checkpoint=checkpoint,
    )
    return weights, events


def losses(events: list[AnyEvent]) -> list[float]:
    return [e.value for e in events if isinstance(e, Level) and e.name == "loss"]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_loss_falls(precision: str) -> None:
    _, events = run(update(TINY.training, {"precision": precision}))
    curve = losses(events)
    assert len(curve) == 6
    assert curve[0] > 4 and curve[-1] < 0.7 * curve[0]


def test_without_a_rate_nothing_is_learnt() -> None:
    _, events = run(update(TINY.training, {"rate": 1e-6}))
    curve = losses(events)
    assert curve[-1] > 0.95 * curve[0]


def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(tmp_path: Path) -> None:
    whole, told = run(TINY.training)
    checkpoint = tmp_path / "checkpoint.safetensors"
    run(update(TINY.training, {"steps": 20, "decay": 0}), checkpoint)
    resumed, rest = run(TINY.training, checkpoint)
    assert any(isinstance(e, Mark) and "from step 20" in e.text for e in rest)
    assert losses(rest) == losses(told)[4:]
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_a_foreign_checkpoint_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.safetensors"
    checkpoint.write_bytes(b"something else")
    with pytest.raises(BadInput, match="no whole checkpoint"):
        run(TINY.training, checkpoint)


def test_events_come_in_time_order_and_tell_of_validation() -> None:
    _, events = run(TINY.training)
    times = [event.time for event in events]
    assert times == sorted(times)
    spans = [event.tag for event in events if isinstance(event, Span)]
    assert spans[0] == "0:5" and spans[-1] == "25:30"
    assert sum(isinstance(e, Level) and e.name == "validation_loss" for e in events) == 2


def test_the_window_grows_in_the_decay_and_the_step_keeps_its_tokens() -> None:
    recipe = TINY.training
    assert [recipe.window(step) for step in (0, 19, 20, 29)] == [16, 16, 32, 32]
    assert recipe.tokens_seen() == 30 * 128


def test_what_writes_into_the_residual_starts_smaller() -> None:
    weights = fresh_weights(TINY.model(), seed=0)
    spread = {name: weight.std().item() for name, weight in weights.items() if weight.ndim > 1}
    assert spread["model.layers.0.mlp.up_proj.weight"] == pytest.approx(0.02, rel=0.1)
    assert spread["model.layers.0.mlp.down_proj.weight"] == pytest.approx(0.01, rel=0.1)
    assert spread["model.layers.1.self_attn.o_proj.weight"] == pytest.approx(0.01, rel=0.1)


def test_products_are_narrow_only_where_the_processor_has_them(monkeypatch) -> None:
    for name, expected in (("AVX2", False), ("DEFAULT", False), ("AVX512", True)):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda name=name: name)
        assert narrow("bfloat16") is expected and not narrow("float32")
        with products("bfloat16"):
            found = torch.ones(2, 2) @ torch.ones(2, 2)
        assert found.dtype == (torch.bfloat16 if expected else torch.float32)


def test_who_is_taught_by_itself_learns_nothing_and_by_another_becomes_like_it() -> None:
    recipe = update(TINY.training, {"precision": "float32", "weight_decay": 0.0})
    start = fresh_weights(TINY.model(), seed=1)
    other, _ = run(recipe)

    def taught_by(teacher: dict[str, Tensor]) -> dict[str, Tensor]:
        return train(
            TINY.model(), recipe, STREAM, HELD_OUT, emit=lambda event: None, clock=WallClock(),
            start={name: weight.clone() for name, weight in start.items()},
            teacher=(TINY.model(), teacher),
        )  # fmt: skip

    def apart(weights: dict[str, Tensor], teacher: dict[str, Tensor]) -> float:
        ids = torch.from_numpy(STREAM[None, :32].astype(np.int64))
        told, asked = (
            dense(TINY.model(), each, ids).log_softmax(-1) for each in (weights, teacher)
        )
        return float((asked.exp() * (asked - told)).sum(-1).mean())

    same = taught_by({name: weight.clone() for name, weight in start.items()})
    assert apart(same, start) < 0.001 * apart(start, other)  # what rounding moves
    assert apart(taught_by(other), other) < 0.3 * apart(start, other)
