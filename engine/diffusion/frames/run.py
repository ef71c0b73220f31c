"""A game of Catch played in frames that a model makes, some of them before their action is told."""

from typing import Any, Literal

import numpy as np

from engine.core.clock import WallClock
from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.core.events import Branch, Level
from engine.core.run import Live
from engine.diffusion.frames.film import Film, Shown, Staircase
from engine.diffusion.frames.game import ACTIONS, SIZE, allowed, film, keys
from engine.diffusion.frames.model import BACK, SHIPPED, FrameModel, load_frames
from engine.inference.config import InferenceConfig
from engine.inference.engine import Emit, Engine
from engine.inference.executors.tensors.real_executor import executor_for

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
    model: Literal["distilled", "teacher"] = knob("distilled", "Distilled to few steps, or teacher")
    weights: str = knob(SHIPPED, "The shipped models, or a folder with others of both")
    seed: int = knob(0, "Seed of the player, the first frames and the noise", low=0, high=2**31)
    fault: Literal["none", "keeps", "resumes", "blind"] = knob(
        "none", "What goes wrong: frames of a wrong guess are kept, or go on half made under the "
        "right action, or a frame does not see those before it", group="faults",
    )  # fmt: skip


def engine_for(model: FrameModel, how: Staircase, emit: Emit, **beside: Any) -> Engine:
    """An engine with room for a film that is made like that; `beside`: of `Engine`."""
    rows = max(BACK + 1, 2 + how.ahead) * SIZE
    config = InferenceConfig(page_size=SIZE, pages=how.kept(how.ahead), step_tokens=rows)
    executor = executor_for(config, model.opened(), SHIPPED)
    return Engine(config, executor, WallClock(), emit, **beside)


def run(config: FramesConfig, live: Live) -> None:
    """Show frame after frame; raises BadInput where the lag is more than the steps."""
    if config.lag > config.steps:
        raise BadInput(f"lag {config.lag}: a frame has {config.steps} steps; at most so many")
    chance = np.random.default_rng(config.seed)
    actions = keys(BACK + config.frames, config.held, chance).tolist()
    first, model = film(np.array(actions[:BACK]), chance), load_frames(config.model, config.weights)
    how = Staircase(config.steps, config.lag, config.ahead, config.seed, config.fault)
    engine = engine_for(model, how, live.emit, blobs=live.log.blobs)
    clock, facts = engine.clock, engine.executor.facts.header()
    facts |= {"pages": engine.config.pages, "page_size": SIZE}
    live.open(config, clock, actions=list(ACTIONS), first=BACK, **facts)
    live.emit(Branch(clock.now(), "game", why="the first frames are given"))
    for number, frame in enumerate(first):
        live.keep(clock.now(), name(number, "given", actions[number], config.steps), frame)
    played, before = Film(engine, model, how, first, actions), first[-1]
    for number in range(BACK, BACK + config.frames):
        live.report("frames", number - BACK, config.frames)
        live.poll(clock.now())
        began = clock.now()
        shown = played.show(actions[number])
        seconds = clock.now() - began
        _tell(live, clock.now(), shown, allowed(before, shown.action, shown.cells), seconds)
        before = shown.cells
    played.close()
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
