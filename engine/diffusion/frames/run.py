"""A game of Catch played in frames that a model makes, some of them before their action is told."""

from typing import Literal

import numpy as np

from engine.core.clock import WallClock
from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.core.events import Branch, Level, Span
from engine.core.run import Live
from engine.diffusion.frames.game import ACTIONS, allowed, film, keys
from engine.diffusion.frames.model import BACK, load_frames
from engine.diffusion.frames.sampler import Sampler, Shown, Staircase

FILM = "frames"  # blobs of frames: uint8 [2, 8, 8], named frames/number/state/action/step/allowed
PASSES, ROWS, SECONDS = "passes", "frames computed", "seconds"
ALLOWED, BEGUN = "allowed by the game", "begun before its action"


class FramesConfig(Config):
    """A player, a model of the game, and how its frames are made."""

    frames: int = knob(32, "Frames shown", low=1, high=4096, unit="frames")
    held: float = knob(0.8, "Probability that a player's action is the last one again, whatever "
                       "it is", low=0, high=1, called="Action repeats, probability")  # fmt: skip
    steps: int = knob(4, "Sampling steps of a frame", low=1, high=64, unit="steps")
    ahead: int = knob(3, "Speculative frames at a time, made for the current action", low=0,
                      high=16, unit="frames", called="Frames made ahead")  # fmt: skip
    lag: int = knob(1, "Steps that a frame stays behind the one before it; as many as its steps: "
                    "it waits until that is clean", low=1, high=64, unit="steps")  # fmt: skip
    model: Literal["distilled", "teacher"] = knob(
        "distilled", "The shipped model: distilled to few steps, or the one it was distilled from"
    )
    seed: int = knob(0, "Seed of the player, the first frames and the noise", low=0, high=2**31)
    fault: Literal["none", "keeps", "resumes", "blind"] = knob(
        "none", "What goes wrong: frames of a wrong guess are kept, or go on half made under the "
        "right action, or a frame does not see those before it", group="faults",
    )  # fmt: skip


def run(config: FramesConfig, live: Live) -> None:
    """Show frame after frame; raises BadInput where the lag is more than the steps."""
    if config.lag > config.steps:
        raise BadInput(f"lag {config.lag}: a frame has {config.steps} steps; at most so many")
    clock, chance = WallClock(), np.random.default_rng(config.seed)
    actions = keys(BACK + config.frames, config.held, chance)
    first = film(actions[:BACK], chance)
    how = Staircase(config.steps, config.lag, config.ahead, config.seed, config.fault)
    sampler = Sampler(load_frames(config.model), how, first, [int(a) for a in actions[:BACK]])
    live.open(config, clock, actions=list(ACTIONS), first=BACK)
    live.emit(Branch(clock.now(), "game", why="the first frames are given"))
    for number, frame in enumerate(first):
        live.keep(clock.now(), name(number, "given", int(actions[number]), config.steps), frame)
    before = first[-1]
    for number in range(BACK, BACK + config.frames):
        live.report("frames", number - BACK, config.frames)
        live.poll(clock.now())
        begin = began = clock.now()

        def told(count: int) -> None:
            nonlocal begin
            now = clock.now()
            live.emit(Span(now, "model", "pass", begin, tag=f"frames={count}"))
            begin = now

        shown = sampler.show(int(actions[number]), told)
        seconds = clock.now() - began
        right = allowed(before, shown.action, shown.cells)
        _tell(live, clock.now(), shown, right, seconds)
        before = shown.cells
    live.emit(Branch(clock.now(), "game", state="finished", why="no more frames are asked for"))
    live.report("frames", config.frames, config.frames)


def name(frame: int, state: str, action: int, step: int, right: bool = True) -> str:
    """The blob of a frame."""
    return f"{FILM}/{frame}/{state}/{ACTIONS[action]}/{step}/{'allowed' if right else 'wrong'}"


def _tell(live: Live, now: float, shown: Shown, right: bool, seconds: float) -> None:
    """One frame: those discarded at its action, itself, and what it took."""
    for frame, step, action, cells in shown.refused:
        live.keep(now, f"{name(frame, 'refused', action, step)}/{shown.frame}", cells)
    state = "kept" if shown.begun else "asked"
    live.keep(now, name(shown.frame, state, shown.action, shown.passes, right), shown.cells)
    for what, value in (
        (PASSES, shown.passes), (ROWS, shown.rows), (SECONDS, seconds), (ALLOWED, right),
        (BEGUN, shown.begun),
    ):  # fmt: skip
        live.emit(Level(now, "game", what, float(value)))
