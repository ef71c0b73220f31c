"""The driver of forks and joins: test problems, each a trajectory of ordinary requests.

Emits the engine's own events; answer and verdict in the lane of a trajectory's last request;
counters of the lane `problems`: `done`, `right`, of the problem just done `tokens` and `critical`,
at the end `requests`, `prompt tokens` and `different` ones. The blob `scores_P4` has for each
problem right, tokens, tokens on the critical path, forks; `prompts` (UTF-8) has each request's
name, a byte of 1 and its prompt, with bytes of 0 between.
"""

import numpy as np

from engine.core.events import Blob, Level, Mark
from engine.core.machine import describe
from engine.core.run import Live
from engine.inference.engine import Engine
from engine.inference.executor import Built, Tokens
from engine.reasoning.weaving.config import WeavingConfig
from engine.reasoning.weaving.local_service import LocalService
from engine.reasoning.weaving.modelled_service import modelled_seconds
from engine.reasoning.weaving.trajectory import Trajectory, weave
from engine.tasks.task import Problem


def run(config: WeavingConfig, live: Live) -> None:
    """Work on the config's problems; `live` is where events go and commands come from."""
    live.report("opening the model", 0, 0)
    serving = config.serving()
    built = serving.executor.build(serving)
    live.open(
        config,
        built.clock,
        describe(),
        pages=config.pages,
        page_size=config.page_size,
        **built.executor.facts.header(),
        commands=["abort"],
    )
    engine = Engine(serving, built.executor, built.clock, live.emit, built.tokenizer)
    service = LocalService(engine, built, live, config.temperature)
    solve(config, service, live)


def solve(config: WeavingConfig, service: LocalService, live: Live) -> None:
    """The same with a service at hand."""
    engine = service.engine
    problems = list(config.task.problems("test", config.problems, config.first))
    scores_P4 = np.zeros((len(problems), 4), np.int64)
    place = {f"p{number}": number for number in range(len(problems))}
    done = 0

    def tell(lane: str, name: str, text: str) -> None:
        live.emit(Mark(engine.clock.now(), lane, name, text))

    def ended(one: Trajectory) -> None:
        nonlocal done
        number = place[one.name]
        scores_P4[number] = judge(problems[number], one), one.tokens, one.critical, one.forks
        done += 1
        _tell(live, engine.clock.now(), one, problems[number], scores_P4, done)
        live.report("solving", done, len(problems))

    trajectories = [
        Trajectory(name, problems[n].prompt + config.begin, config.limits(), config.marks, tell)
        for name, n in place.items()
    ]
    weave(trajectories, service, config.at_once, ended)
    _keep(live, engine.clock.now(), "scores_P4", scores_P4)
    for name, value in sent(trajectories, service.tokenizer).items():
        live.emit(Level(engine.clock.now(), "problems", name, float(value)))
    lines = [f"{name}\1{text}" for one in trajectories for name, text in one.prompts.items()]
    _keep(live, engine.clock.now(), "prompts", np.frombuffer("\0".join(lines).encode(), np.uint8))
    if config.timed_as:
        seconds_P = timed(config, service, trajectories)
        _keep(live, engine.clock.now(), "modelled_seconds_P", seconds_P)


def sent(trajectories: list[Trajectory], tokenizer: Tokens) -> dict[str, int]:
    """How many requests there were, the tokens of their prompts, and the different ones.

    Tokens are the same where all before them are.
    """
    prompts = [tokenizer.encode(text) for one in trajectories for text in one.prompts.values()]
    places: dict[tuple[int, int], int] = {}
    for tokens in prompts:
        place = -1
        for token in tokens:
            place = places.setdefault((place, token), len(places))
    counted = sum(len(tokens) for tokens in prompts)
    return {"requests": len(prompts), "prompt tokens": counted, "different": len(places)}


def judge(problem: Problem, one: Trajectory) -> bool:
    """Whether a trajectory ends in the right answer."""
    return not one.fault and problem.check(one.said).right


def timed(config: WeavingConfig, service: LocalService, done: list[Trajectory]) -> np.ndarray:
    """seconds_P of each trajectory, modelled for the config's device."""
    described = config.described()
    built: Built = described.executor.build(described)
    engine = Engine(described, built.executor, built.clock, lambda _: None)
    return np.array(
        [
            modelled_seconds(one, built, engine, service.tokenizer, config.limits(), config.marks)
            for one in done
        ]
    )


def _tell(
    live: Live, now: float, one: Trajectory, problem: Problem, scores_P4: np.ndarray, done: int
) -> None:
    verdict = problem.check(one.said)
    live.emit(Mark(now, one.main, "answer", verdict.answer or "none"))
    live.emit(Mark(now, one.main, "verdict", one.fault or verdict.reason))
    values = {
        "done": done,
        "right": int(scores_P4[:, 0].sum()),
        "tokens": one.tokens,
        "critical": one.critical,
    }
    for name, value in values.items():
        live.emit(Level(now, "problems", name, float(value)))


def _keep(live: Live, now: float, name: str, array: np.ndarray) -> None:
    live.log.blobs[name] = array
    live.emit(Blob(now, name, name, list(array.shape)))
