"""Frames of Catch: the game's own law, keys and values kept, speculation that changes no frame."""

import numpy as np
import pytest
import torch

from engine.core.clock import WallClock
from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Branch, Span
from engine.core.run import Run
from engine.diffusion.frames.film import Film, Shown, Staircase
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
    cells,
    load_frames,
    numbers,
)
from engine.diffusion.frames.run import FramesConfig, engine_for, run
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.requests.request import Request, Sampling
from engine.recipes.catch_frames import frames_at_once
from tests.engine.diffusion.plain_frames import PlainModel, PlainSampler, Row

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
    trained, chance = load_frames(), torch.Generator().manual_seed(0)
    model = PlainModel(trained)
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


def given(how: Staircase, acted: list[int]) -> np.ndarray:
    return film(np.array(acted[:BACK]), np.random.default_rng(how.seed + 2))


def opened(
    how: Staircase, config: InferenceConfig | None = None, acted: list[int] = ACTED
) -> tuple[Film, list[AnyEvent]]:
    events: list[AnyEvent] = []
    model = load_frames()
    engine = engine_for(model, how, events.append)
    if config is not None:
        executor = executor_for(config, model.opened(), "frames")
        engine = Engine(config, executor, WallClock(), events.append)
    return Film(engine, model, how, given(how, acted), acted[:BACK]), events


def plain(how: Staircase, acted: list[int] = ACTED) -> PlainSampler:
    return PlainSampler(load_frames(), how, given(how, acted), acted[:BACK])


def played(how: Staircase) -> list[Shown]:
    own, _ = opened(how)
    shown = [own.show(action) for action in ACTED[BACK:]]
    own.close()
    assert own.cache.held == 0
    return shown


def same(ours: Shown, plain: Shown) -> bool:
    """Whether two loops showed the same frame, of as many steps, after the same discards."""
    read = BACK if ours.frame == BACK else 0  # given frames are read beside the first
    told = [(one.frame, one.action, one.begun, one.passes) for one in (ours, plain)]
    wrong = zip(ours.refused, plain.refused, strict=True)
    counts = told[0] == told[1] and ours.rows == plain.rows + read
    return counts and np.array_equal(ours.cells, plain.cells) and all(
        one[:3] == two[:3] and np.array_equal(one[3], two[3]) for one, two in wrong
    )  # fmt: skip


@pytest.mark.parametrize(("steps", "lag"), [(1, 1), (3, 2), (4, 1)])
def test_speculation_changes_no_frame(steps: int, lag: int) -> None:
    alone = played(Staircase(steps, lag, 0))
    for ahead in (1, 5):
        ours = played(Staircase(steps, lag, ahead))
        assert all(np.array_equal(a.cells, b.cells) for a, b in zip(alone, ours, strict=True))


@pytest.mark.parametrize("fault", ["none", "keeps", "resumes", "blind"])
@pytest.mark.parametrize(("steps", "lag", "ahead"), [(4, 1, 3), (5, 2, 2), (3, 3, 1)])
def test_a_film_is_the_plain_loops(steps: int, lag: int, ahead: int, fault: str) -> None:
    how = Staircase(steps, lag, ahead, 0, fault)
    loop = plain(how)
    acted = zip(played(how), ACTED[BACK:], strict=True)
    assert all(same(one, loop.show(action)) for one, action in acted)


def test_passes_are_those_that_guesses_leave() -> None:
    """Held, a frame comes out of every step; told another action, one takes all its steps, and the
    pages of those that were made for the wrong one are free again."""
    own, events = opened(Staircase(4, 1, 3))
    back, shown = [], []
    for action in (2, 2, 2, 0, 0):
        held = own.cache.held
        shown.append(own.tell(action))
        back.append(held - own.cache.held)
        while own.busy:
            own.engine.step(own)
    assert [one.passes for one in shown] == [4, 1, 1, 4, 1]
    assert [one.begun for one in shown] == [False, True, True, False, True]
    assert back == [0, 0, 0, 3, 0], "two, one and none: nobody sees a frame as noise"
    gone = [e.thread for e in events if isinstance(e, Branch) and e.state == "aborted"]
    assert gone == ["frame 6", "frame 7", "frame 8"]
    steps = [e for e in events if isinstance(e, Span) and e.name == "step"]
    assert len(steps) == sum(one.passes for one in shown), "every pass is a step of the engine"
    own.close()
    ends = {e.thread: e.state for e in events if isinstance(e, Branch)}
    assert ends == {f"frame {i}": "finished" if i < 8 else "aborted" for i in range(11)}


def schedule(seed: int) -> tuple[int, int]:
    """A film and requests of one engine with few pages, in any order; how often requests and
    speculative frames yielded. Both say what they say alone."""
    chance = np.random.default_rng(seed)
    steps, count = int(chance.integers(1, 7)), 8
    lag = int(chance.integers(1, steps + 1)) if chance.random() < 0.3 else 1
    how = Staircase(steps, lag, int(chance.integers(5)), seed)
    each = int(chance.choice([1, 2, 4]))
    config = InferenceConfig(
        page_size=SIZE // each, pages=max(how.kept(0), 6) * each + int(chance.integers(4)),
        max_running=4, step_tokens=int(chance.choice([24, 64])),
        prefix_sharing=bool(chance.integers(2)),
    )  # fmt: skip
    acts = keys(BACK + count, 0.8, chance).tolist()
    own, events = opened(how, config, acts)
    told = Shown(-1, 0, False, [])
    loop, engine, shown = plain(how, acts), own.engine, 0
    wanted = [
        (chance.integers(0, NUMBERS, chance.integers(2, 12)), int(chance.integers(4, 30)))
        for _ in range(int(chance.integers(6)))
    ]
    asked: list[Request] = []
    while shown < count or engine.busy or len(asked) < len(wanted):
        if len(asked) < len(wanted) and chance.random() < 0.4:
            asked.append(request(*wanted[len(asked)]))
            engine.add(asked[-1])
        if shown < count and not own.busy and chance.random() < 0.7:
            told = own.tell(acts[BACK + shown])
        engine.step(own)
        if len(told.cells) and told.frame == BACK + shown:
            assert np.array_equal(told.cells, loop.show(told.action).cells)
            shown += 1
            if shown == count:
                own.close()
    assert own.cache.held == 0
    for one, (prompt, length) in zip(asked, wanted, strict=True):
        assert np.array_equal(one.tokens, alone(prompt, length))
    lost = [e for e in events if isinstance(e, Branch) and e.state == "preempted"]
    frames = sum("frame" in e.thread for e in lost)
    return len(lost) - frames, frames


def request(prompt: np.ndarray, count: int) -> Request:
    wish = Sampling(max_tokens=count, ignore_eos=True)
    return Request(prompt.astype(np.int32), wish)


def alone(prompt: np.ndarray, count: int) -> np.ndarray:
    """The tokens of a request that has the engine to itself."""
    own, _ = opened(Staircase(4, 1, 3))
    asked = request(prompt, count)
    own.engine.add(asked)
    own.engine.run()
    assert asked.tokens is not None
    return asked.tokens


def test_frames_and_requests_share_steps_and_say_what_they_say_alone(full: bool) -> None:
    yielded = np.array([schedule(seed) for seed in range(500 if full else 12)])
    assert (yielded.sum(0) > 0).all(), "requests and speculative frames had to yield"


def test_pages_that_hold_no_frames_are_refused() -> None:
    how = Staircase(4, 1, 3)
    for page_size, pages, least in ((16, 512, 6), (8, 12, 13), (2, 51, 52)):
        with pytest.raises(BadInput, match=f"{pages} pages of {page_size} tokens: frames in 4 "
                           f"steps need {least}, of a size that divides 8"):  # fmt: skip
            opened(how, InferenceConfig(page_size=page_size, pages=pages))


def test_a_lag_beyond_the_steps_is_refused() -> None:
    with pytest.raises(BadInput, match="lag 3: a frame has 2 steps"):
        Run.execute(run, FramesConfig(frames=1, steps=2, lag=3))
