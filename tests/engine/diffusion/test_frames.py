"""Frames of Catch: the game's own law, keys and values kept, speculation that changes no frame."""

import numpy as np
import pytest
import torch

from engine.core.errors import BadInput
from engine.core.run import Run
from engine.diffusion.frames.game import (
    ACTIONS,
    SIZE,
    allowed,
    drawn,
    film,
    following,
    keys,
    place_of,
)
from engine.diffusion.frames.model import (
    BACK,
    NUMBERS,
    Row,
    cells,
    frames_at_once,
    load_frames,
    numbers,
)
from engine.diffusion.frames.run import FramesConfig, run
from engine.diffusion.frames.sampler import Sampler, Staircase

ACTED = [1, 1, 1, 2, 2, 2, 0, 0, 1, 2, 2, 2, 2]


def test_what_the_game_shows_is_allowed_and_nothing_else() -> None:
    chance = np.random.default_rng(0)
    actions = keys(40, 0.5, chance)
    shown = film(actions, chance)
    pairs = zip(shown, actions[1:], shown[1:], strict=False)
    assert all(allowed(before, int(action), after) for before, action, after in pairs)
    before = drawn((3, 2, 5))
    assert following((3, 2, 5), ACTIONS.index("left")) == [(2, 3, 5)]
    assert not allowed(before, ACTIONS.index("right"), drawn((2, 3, 5)))
    assert not allowed(before, 0, before) and place_of(np.zeros_like(before)) is None
    assert len(following((3, SIZE - 1, 5), 1)) == SIZE
    assert following((0, 0, 0), 0) == [(0, 1, 0)], "a wall stops the paddle"


def test_a_player_who_always_holds_never_changes() -> None:
    assert len(set(keys(50, 1.0, np.random.default_rng(1)).tolist())) == 1


def test_cells_are_numbers_and_back() -> None:
    frame = torch.from_numpy(drawn((1, 4, 6)))
    assert torch.equal(cells(numbers(frame)), frame)


def test_frames_kept_are_frames_at_once() -> None:
    """Pass after pass with keys and values kept, and all in one pass as training has it."""
    model, chance = load_frames(), torch.Generator().manual_seed(0)
    count = BACK + 3
    x_1FTN = torch.randn((1, count, SIZE, NUMBERS), generator=chance)
    t_1F = torch.rand((1, count), generator=chance)
    actions = torch.tensor([[0, 1, 2, 2, 1, 0]])
    with torch.inference_mode():
        whole = frames_at_once(model.config, model.weights, x_1FTN, t_1F, actions)[0]
        for at in range(count):
            sees = tuple((i, 0) for i in range(max(0, at - BACK), at))
            row = Row(at, 0, x_1FTN[0, at], float(t_1F[0, at]), int(actions[0, at]), sees)
            assert torch.allclose(model.forward([row])[0], whole[at], atol=1e-4)


def played(how: Staircase) -> list[np.ndarray]:
    first = film(np.array(ACTED[:BACK]), np.random.default_rng(2))
    sampler = Sampler(load_frames(), how, first, ACTED[:BACK])
    return [sampler.show(action).cells for action in ACTED[BACK:]]


@pytest.mark.parametrize(("steps", "lag"), [(1, 1), (3, 2), (4, 1)])
def test_speculation_changes_no_frame(steps: int, lag: int) -> None:
    alone = played(Staircase(steps, lag, 0))
    for ahead in (1, 5):
        ours = played(Staircase(steps, lag, ahead))
        assert all(np.array_equal(a, b) for a, b in zip(alone, ours, strict=True))


def test_passes_are_those_that_guesses_leave() -> None:
    """Held, a frame comes out of every pass; told another action, one takes all its steps."""
    first = film(np.array(ACTED[:BACK]), np.random.default_rng(2))
    sampler = Sampler(load_frames(), Staircase(4, 1, 3), first, ACTED[:BACK])
    shown = [sampler.show(action) for action in (2, 2, 2, 0, 0)]
    assert [one.passes for one in shown] == [4, 1, 1, 4, 1]
    assert [one.begun for one in shown] == [False, True, True, False, True]
    assert [len(one.refused) for one in shown] == [0, 0, 0, 3, 0]
    assert [own[1] for own in shown[3].refused] == [3, 2, 1], "steps that they had done"
    assert len(sampler.model.kept) < 60, "what nobody sees any more is given back"


def test_a_lag_beyond_the_steps_is_refused() -> None:
    with pytest.raises(BadInput, match="lag 3: a frame has 2 steps"):
        Run.execute(run, FramesConfig(frames=1, steps=2, lag=3))
