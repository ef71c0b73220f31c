"""Checkpoints: a crash at any moment leaves a whole one, a damaged or foreign one is told."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.optim import AdamW

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.core.run import Stopped
from engine.training.loop import checkpoint as module
from engine.training.loop.checkpoint import Saved, load_checkpoint, previous, save_checkpoint
from engine.training.loop.resume import require_same
from tests.engine.training.losses.test_language import STREAM, TINY, losses, run

FACTS = {"rate": 0.5, "ranks": 1, "steps": 30, "decay": 10}


def made(step: int) -> tuple[dict[str, Tensor], AdamW]:
    """Weights and moments that say which step they are of."""
    weights = {"a": torch.full((3, 2), float(step)), "b": torch.full((5,), step + 0.5)}
    optimizer = AdamW([weight.requires_grad_() for weight in weights.values()])
    for weight in weights.values():
        state = {"step": torch.tensor(float(step)), "exp_avg": weight.detach() * 2}
        optimizer.state[weight] = {**state, "exp_avg_sq": weight.detach() * 3}
    return weights, optimizer


def write(path: Path, step: int, **more: Any) -> None:
    weights, optimizer = made(step)
    save_checkpoint(path, step, weights, optimizer, FACTS, **more)


def read(path: Path) -> Saved | None:
    weights, optimizer = made(0)
    found = load_checkpoint(path, weights, optimizer)
    if found is not None:
        assert (weights["a"] == found.step).all() and (weights["b"] == found.step + 0.5).all()
        state = optimizer.state[weights["a"]]
        assert (state["exp_avg_sq"] == 3 * found.step).all() and state["step"] == found.step
    return found


class Crash(Exception):
    pass


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    assert read(path) is None
    write(path, 3)
    write(path, 5)
    assert read(path) == Saved(5, FACTS)
    assert read(previous(path)) == Saved(3, FACTS)


@pytest.mark.parametrize("call", range(6))
def test_a_crash_at_any_moment_of_a_write_leaves_a_whole_one(
    call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.safetensors"
    write(path, 3)
    write(path, 5)
    left = iter(range(call))

    def or_crash(act: Any) -> Any:
        def acted(*args: Any, **kwargs: Any) -> Any:
            if next(left, None) is None:
                raise Crash
            return act(*args, **kwargs)

        return acted

    for name, owner in (("save_file", module), ("replace", os), ("fsync", os)):
        monkeypatch.setattr(owner, name, or_crash(getattr(owner, name)))
    with pytest.raises(Crash):
        write(path, 7)
    monkeypatch.undo()
    found = read(path)
    assert found is not None and found.step == (7 if call == 5 else 5)
    assert bool(found.fallback) == (call == 4)  # the old one has left, the new one is not there yet
    write(path, 9)
    again = read(path)
    assert again == Saved(9, FACTS)


@pytest.mark.parametrize("how", ["truncated", "empty", "flipped", "something else"])
def test_a_damaged_one_is_set_aside_for_the_one_before(how: str, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    write(path, 3)
    write(path, 5)
    data = path.read_bytes()
    flipped = data[:-4] + bytes([data[-4] ^ 1]) + data[-3:]
    bad = {"truncated": data[:-7], "empty": b"", "flipped": flipped, "something else": b"x" * 99}
    path.write_bytes(bad[how])
    found = read(path)
    assert found is not None and found.step == 3
    assert "damaged" in found.fallback and path.name in found.fallback
    write(path, 4)  # must not push the damaged one over the whole one
    assert read(previous(path)) is None or read(previous(path)) == Saved(3, FACTS)
    assert read(path) == Saved(4, FACTS)


def test_what_is_said_of_the_tensors_is_as_whole_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    write(path, 5)
    data = path.read_bytes()
    for changed in (b'"step":"5', b'"rate\\": 0.5'):
        at = data.index(changed) + len(changed) - 1
        path.write_bytes(data[:at] + b"4" + data[at + 1 :])
        with pytest.raises(BadInput, match="its bytes are not those that were written"):
            read(path)


def test_none_left_whole_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    write(path, 3)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(BadInput, match=r"no whole checkpoint .*delete it"):
        read(path)


def test_another_models_tensors_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    write(path, 3)
    weights, optimizer = made(0)
    with pytest.raises(BadInput, match=r"of another model, c is missing"):
        load_checkpoint(path, {**weights, "c": torch.zeros(1)}, optimizer)
    with pytest.raises(BadInput, match=r"of another model, a has shape \[3, 2\]"):
        load_checkpoint(path, {"a": torch.zeros(2, 2)}, optimizer)


def test_another_run_is_refused_by_the_first_difference() -> None:
    place, saved = Path("c"), Saved(20, FACTS)
    require_same(place, saved, FACTS)
    require_same(place, saved, {**FACTS, "steps": 100, "decay": 80})
    with pytest.raises(BadInput, match="made with ranks = 1, this run has 2"):
        require_same(place, saved, {**FACTS, "ranks": 2})
    with pytest.raises(BadInput, match="made with rate = 0.5, this run has 0.25"):
        require_same(place, saved, {**FACTS, "rate": 0.25})
    with pytest.raises(BadInput, match="20 steps reach into the decay, which began at 19"):
        require_same(place, saved, {**FACTS, "steps": 29})
    with pytest.raises(BadInput, match="put back steps = 30 and decay = 10"):
        require_same(place, Saved(21, FACTS), {**FACTS, "steps": 100})


def test_training_says_so_when_it_falls_back_and_finds_the_same_losses(tmp_path: Path) -> None:
    _, told = run(TINY.training)
    path = tmp_path / "checkpoint.safetensors"
    run(update(TINY.training, {"steps": 20, "decay": 0}), path)
    path.write_bytes(path.read_bytes()[:-1])
    _, rest = run(TINY.training, path)
    marks = {event.name: event.text for event in rest if isinstance(event, Mark)}
    assert "from step 10" in marks["resume"] and "damaged" in marks["fallback"]
    assert losses(rest) == losses(told)[2:]


def test_a_checkpoint_of_another_rate_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    run(update(TINY.training, {"steps": 10, "decay": 0}), path)
    with pytest.raises(BadInput, match="made with rate = 0.01, this run has 0.02"):
        run(update(TINY.training, {"rate": 0.02}), path)


def test_asked_to_stop_it_saves_and_the_rest_has_the_same_losses(tmp_path: Path) -> None:
    from engine.core.clock import WallClock
    from engine.training.losses.language import train

    _, told = run(TINY.training)
    path, events = tmp_path / "checkpoint.safetensors", []
    with pytest.raises(Stopped):
        train(
            TINY.model(), TINY.training, STREAM, STREAM[:200], emit=events.append,
            clock=WallClock(), checkpoint=path, poll=lambda step: step == 14,
        )  # fmt: skip
    _, rest = run(TINY.training, path)
    assert any(isinstance(e, Mark) and "from step 15" in e.text for e in rest)
    assert losses(rest) == losses(told)[3:]
