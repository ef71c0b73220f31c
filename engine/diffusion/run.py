"""The driver of masked-diffusion decoding: answers drawn step by step, and what they must lose.

Every step of every prompt is told: who was decided (`Token`), and beside the log a grid with each
position's score, its token and whether it stands (`GRID`). For each prompt the error of the policy,
its bound, the probability of a valid answer and the steps are Levels.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np

from engine.core.clock import WallClock
from engine.core.config import Choice, Config, kinds, knob
from engine.core.events import Branch, Level, Span, Token
from engine.core.plot import BOUND as BOUND_OF
from engine.core.plot import Plot
from engine.core.run import Live
from engine.diffusion.decode import Decided, Distance, decode, distance
from engine.diffusion.joints import LONGEST, MASK, WORDS, Joint, TaskName, draw
from engine.diffusion.model import Exact, Predictor, load_masked
from engine.diffusion.unmasking import Confidence, Fixed, Unmasking

GRID = "unmasking"  # blobs of steps: [3, L] scores, tokens (MASK where none stands), decided now
ERROR, BOUND = "error (nats)", "bound (nats)"
VALID, STEPS = "probability of a valid answer", "steps"
LOST = Plot("What a step of several tokens loses", "tokens decided in a step", "error (nats)")


class DiffusionConfig(Config):
    """Prompts of a list task, the model that fills in their answers, and in which order."""

    task: TaskName = knob("shuffle", "What is asked of a list")
    length: int = knob(5, "Items of the list", low=2, high=LONGEST, unit="tokens")
    unmasking: Choice[Unmasking] = knob(make=Confidence, doc="Which positions a step decides")
    model: Literal["trained", "exact"] = knob(
        "trained", "Who says what may stand there: the shipped model, or the joint's own marginals"
    )
    prompts: int = knob(4, "Prompts", low=1, high=64)
    seed: int = knob(0, "Seed of the prompts and draws", low=0, high=2**31)
    sweep: bool = knob(False, "Draw the error of the first prompt over tokens decided in a step")
    fault: Literal["none", "peeks", "causal"] = knob(
        "none", "What goes wrong: tokens of one step see those drawn before them in it, or the "
        "model sees only what stands before", group="faults",
    )  # fmt: skip


def predictor(config: DiffusionConfig) -> Predictor:
    """The model that a config names. Raises BadInput."""
    if config.model == "exact":
        return Exact()
    return load_masked(causal=config.fault == "causal")


def joints(config: DiffusionConfig) -> list[Joint]:
    """The prompts of a config."""
    seeds = ([config.seed, number] for number in range(config.prompts))
    return [draw(config.task, config.length, np.random.default_rng(seed)) for seed in seeds]


def run(config: DiffusionConfig, live: Live) -> None:
    """Decode each prompt once, and follow all its answers."""
    clock = WallClock()
    predict = predictor(config)
    live.open(
        config,
        clock,
        plots=(LOST,) if config.sweep else (),
        question="What do several tokens decided at once lose?",
        words=list(WORDS),
        mask=MASK,
    )
    peeks = config.fault == "peeks"
    for number, joint in enumerate(joints(config)):
        live.report("decoding", number, config.prompts)
        live.poll(clock.now())
        thread = f"r{number}"
        asked = " ".join(WORDS[token] for token in joint.prompt)
        live.emit(Branch(clock.now(), thread, why=asked))
        begin, steps = clock.now(), 0
        for step in decode(predict, config.unmasking, joint, 1, config.seed + number, peeks):
            now = clock.now()
            live.emit(Span(now, "engine", "step", begin, tag=f"decided={step.chosen_NL.sum()}"))
            _tell(live, now, thread, steps, step)
            begin, steps = now, steps + 1
        told = distance(predict, config.unmasking, joint, config.seed + number, peeks)
        _levels(live, clock.now(), thread, told)
        live.emit(Branch(clock.now(), thread, state="finished", why="nothing is masked"))
    if config.sweep:
        _sweep(config, predict, live, clock.now)
    live.report("decoding", config.prompts, config.prompts)


def _tell(live: Live, now: float, thread: str, number: int, step: Decided) -> None:
    """One step of one text: its grid, and the tokens that it decided."""
    chosen_L, texts_L = step.chosen_NL[0], step.texts_NL[0]
    stands_L = np.where(step.revealed_NL[0], texts_L, MASK)
    live.keep(now, f"{GRID}/{thread}/{number}", np.stack([step.scores_NL[0], stands_L, chosen_L]))
    for place in np.flatnonzero(chosen_L).tolist():
        word = f"{place}:{WORDS[texts_L[place]]} "
        live.emit(Token(now, thread, word, float(step.logprobs_NL[0, place])))


def _levels(live: Live, now: float, lane: str, told: Distance) -> None:
    for name, value in (
        (ERROR, told.error), (BOUND, told.bound), (VALID, told.valid), (STEPS, told.steps)
    ):  # fmt: skip
        live.emit(Level(now, lane, name, value))


def _sweep(
    config: DiffusionConfig, predict: Predictor, live: Live, now: Callable[[], float]
) -> None:
    """Error and bound of the first prompt over tokens decided in a step, of every policy that
    takes a number."""
    joint = joints(config)[0]
    for kind, policy in kinds(Unmasking).items():
        if not issubclass(policy, Fixed):
            continue
        points: dict[str, list[tuple[float, float]]] = {kind: [], f"{kind}{BOUND_OF}": []}
        for tokens in range(1, config.length + 1):
            counted = policy.model_validate({"tokens": tokens})
            told = distance(predict, counted, joint, config.seed)
            points[kind].append((tokens, told.error))
            points[f"{kind}{BOUND_OF}"].append((tokens, told.bound))
        for name, rows in points.items():
            live.curve(now(), LOST, name, rows)
