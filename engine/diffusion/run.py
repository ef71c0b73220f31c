"""The driver of masked-diffusion decoding: answers drawn step by step, and what they must lose.

The serving engine draws them, all prompts in one batch: its events tell who was decided (`Token`),
and beside the log lies a grid of each step with every position's score, its token and whether it
was decided then. For each prompt the error of the policy, its bound, the probability of a valid
answer and the steps, all exact and by the model itself, are Levels.
"""

from typing import Literal

import numpy as np

from engine.core.clock import WallClock
from engine.core.config import Choice, Config, kinds, knob
from engine.core.events import Branch, Level
from engine.core.paths import dataset
from engine.core.plot import BOUND as BOUND_OF
from engine.core.plot import Plot
from engine.core.run import Live
from engine.diffusion.distance import Distance, distance
from engine.diffusion.joints import LONGEST, MASK, WORDS, Joint, TaskName, draw
from engine.diffusion.model import FOLDER, SHIPPED, Exact, Predictor, folder_of, load_masked
from engine.diffusion.serving import executor_of, serving
from engine.inference.engine import Engine
from engine.inference.executors.tensors.real_executor import tokenizer_of
from engine.inference.policies.unmasking import Confidence, Fixed, Unmasking
from engine.inference.requests.canvas import Canvas
from engine.inference.requests.request import Request, Sampling

ERROR, BOUND = "error (nats)", "bound (nats)"
VALID, STEPS = "probability of a valid answer", "steps"
LOST = Plot("What a step of several tokens loses", "tokens decided in a step", "error (nats)")


class DiffusionConfig(Config):
    """Prompts of a list task, the model that fills in their answers, and in which order."""

    task: TaskName = knob("shuffle", "What is asked of a list")
    length: int = knob(5, "Items of the list", low=2, high=LONGEST, unit="tokens")
    unmasking: Choice[Unmasking] = knob(make=Confidence, doc="Which positions a step decides")
    model: Literal["trained", "exact"] = knob(
        "trained", "Who says what may stand there: a trained model, or the joint's own marginals"
    )
    weights: str = knob(SHIPPED, "The trained model: the shipped one, or a folder of another")
    at_once: int = knob(64, "Texts in the engine's batch at once", low=1, high=64)
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
    return load_masked(folder_of(config.weights), config.fault == "causal")


def joints(config: DiffusionConfig) -> list[Joint]:
    """The prompts of a config."""
    seeds = ([config.seed, number] for number in range(config.prompts))
    return [draw(config.task, config.length, np.random.default_rng(seed)) for seed in seeds]


def run(config: DiffusionConfig, live: Live) -> None:
    """Serve all prompts in one batch, then follow all answers of each."""
    predict, asked = predictor(config), joints(config)
    served = serving(len(asked), config.at_once, config.seed)
    executor = executor_of(served, predict, asked)
    words = tokenizer_of(dataset(f"{FOLDER}/{SHIPPED}"))
    clock = WallClock()
    live.open(
        config,
        clock,
        plots=(LOST,) if config.sweep else (),
        question="What do several tokens decided at once lose?",
        pages=served.pages,
        page_size=served.page_size,
    )
    engine = Engine(served, executor, clock, live.emit, words, live.log.blobs)
    for number, joint in enumerate(asked):
        thread = engine.add(_request(config, joint, number))
        said = " ".join(WORDS[token] for token in joint.prompt)
        live.emit(Branch(clock.now(), thread, why=said))
    while engine.busy and engine.step():
        live.report("decoding", len(asked) - len(engine.requests), len(asked))
        live.poll(clock.now())
    peeks, ended = config.fault == "peeks", clock.now()  # what is counted takes none of its time
    for number, joint in enumerate(asked):
        live.report("following all answers", number, len(asked))
        live.poll(ended)
        told = distance(predict, config.unmasking, joint, config.seed + number, peeks)
        _levels(live, ended, f"r{number}", told)
    if config.sweep:
        _sweep(config, predict, live, ended)
    live.report("decoding", len(asked), len(asked))


def _request(config: DiffusionConfig, joint: Joint, number: int) -> Request:
    """A prompt with a block of masks behind it; tokens are drawn at temperature one."""
    seed, length = config.seed + number, joint.answers_SL.shape[1]
    return Request(
        joint.prompt.astype(np.int32),
        Sampling(max_tokens=length, temperature=1.0, seed=seed, ignore_eos=True),
        id=f"r{number}",
        canvas=Canvas(MASK, config.unmasking, config.fault == "peeks"),
    )


def _levels(live: Live, now: float, lane: str, told: Distance) -> None:
    for name, value in (
        (ERROR, told.error), (BOUND, told.bound), (VALID, told.valid), (STEPS, told.steps)
    ):  # fmt: skip
        live.emit(Level(now, lane, name, value))


def _sweep(config: DiffusionConfig, predict: Predictor, live: Live, now: float) -> None:
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
            live.curve(now, LOST, name, rows)
