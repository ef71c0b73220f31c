"""Fork and join by ordinary requests: a trajectory splits into parallel ones (arXiv 2512.07843).

Emits the engine's own events; answer and verdict in the lane of a trajectory's last request;
counters of the lane `problems` beside those of every method: at the end `requests`,
`prompt tokens` and `different` ones. The blob `prompts` (UTF-8) has each request's name, a byte of
1 and its prompt, with bytes of 0 between.
"""

from typing import Any, Literal

import numpy as np

from engine.core.config import knob, update
from engine.core.events import Level, Mark
from engine.core.run import Live
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built, Tokens
from engine.inference.executors.modelled import Modelled
from engine.inference.run import obey
from engine.reasoning.fork_join.engine_services import LocalService, modelled_seconds
from engine.reasoning.fork_join.trajectory import Forks, Limits, Marks, Trajectory
from engine.reasoning.solving.by_requests import RequestConfig, open_engine
from engine.reasoning.solving.method import Asked, Result
from engine.reasoning.solving.solve import LANE, Listener, solve
from engine.tasks.part_sums import FORK, SERIAL, PartSums


class ForkJoinConfig(RequestConfig):
    """A model that forks and joins in its text, what it is asked, and what it may use."""

    model: str = knob("part-sums-500k", "A shipped model of the task, or a folder")
    task: PartSums = knob(make=PartSums, doc="What is asked")
    mode: Literal["forked", "serial"] = knob(
        "forked", "The prompt's last word: work in threads, or on one part after the other"
    )
    problems: int = knob(6, "Test problems", low=1, high=100_000, log=True)
    at_once: int = knob(16, "Problems under way at once", low=1, high=1024)
    marks: Marks = knob(make=Marks, doc="Words of forks and joins", group="marks")

    segment: int = knob(
        200, "Tokens of one request", low=1, high=1 << 20, unit="tokens", group="budget"
    )
    threads: int = knob(8, "Threads that one fork may have", low=1, high=64, group="budget")
    together: int = knob(
        0, "Threads of a fork under way at once; 0: all of them", low=0, high=64, group="budget"
    )
    critical: int = knob(
        0, "Tokens on a problem's longest chain of requests; 0: no limit",
        low=0, high=1 << 20, unit="tokens", group="budget",
    )  # fmt: skip
    total: int = knob(
        0, "Tokens of all requests of a problem; 0: no limit", low=0, high=1 << 20, unit="tokens",
        group="budget",
    )  # fmt: skip

    siblings_apart: bool = knob(
        True, "No thread sees another, in requests and tries; off: each reads its elders first",
        group="mechanism",
    )  # fmt: skip

    fault: Literal["none", "short"] = knob(
        "none", "What goes wrong with requests: each arrives without its last token",
        group="faults",
    )  # fmt: skip

    page_size: int = knob(4, "Tokens in a page", low=1, high=256, unit="tokens", group="engine")
    pages: int = knob(4096, "Pages of the cache", low=1, high=1 << 22, group="engine", log=True)

    timed_as: str = knob(
        "", "Time each problem's requests, alone, as those of this zoo model; empty: not",
        group="modelled",
    )  # fmt: skip
    device: str = knob("h100-sxm", "… on this device of datasets/hardware", group="modelled")

    def described(self) -> InferenceConfig:
        """The engine whose seconds are modelled. Raises BadInput where the device is not known."""
        return InferenceConfig(
            model=self.timed_as, dtype="bfloat16", pages=512, prefix_sharing=self.prefix_sharing,
            executor=update(Modelled(constants="operators"), {"device": self.device}),
        )  # fmt: skip

    def limits(self) -> Limits:
        """What each trajectory may use."""
        budget = self.segment, self.threads, self.together, self.critical, self.total
        return Limits(*budget, self.siblings_apart)

    @property
    def begin(self) -> str:
        """What the prompt ends in."""
        return FORK if self.mode == "forked" else SERIAL


class ForkJoin:
    """A method of `solving`: problems as trajectories over one engine, which knows no threads."""

    def __init__(self, config: ForkJoinConfig, service: LocalService) -> None:
        self.config, self.service, self.forks = config, service, Forks(service)
        self.problems: dict[str, Asked] = {}

    def room(self) -> bool:
        return self.forks.running < self.config.at_once

    def begin(self, asked: Asked) -> None:
        self.problems[asked.name] = asked
        config, prompt = self.config, asked.problem.prompt + self.config.begin
        self.forks.begin(Trajectory(asked.name, prompt, config.limits(), config.marks, self._tell))

    def obey(self, command: dict[str, Any]) -> None:
        obey(self.service.engine, self.service.built, command)

    def step(self) -> list[Trajectory]:
        return self.forks.step()

    def asked(self, attempt: Trajectory) -> Asked:
        return self.problems[attempt.name]

    def result(self, attempt: Trajectory) -> Result:
        verdict = self.asked(attempt).problem.check(attempt.said)
        return Result(
            verdict.answer,
            verdict.right and not attempt.fault,
            attempt.fault or verdict.reason,
            figures={
                "tokens": attempt.tokens,
                "critical": attempt.critical,
                "forks": attempt.forks,
            },
            lane=attempt.main,
        )

    def _tell(self, lane: str, name: str, text: str) -> None:
        engine = self.service.engine
        engine.emit(Mark(engine.clock.now(), lane, name, text))


def run(config: ForkJoinConfig, live: Live) -> None:
    """Work on the config's problems; `live` is where events go and commands come from."""
    engine, built = open_engine(config, live)
    service = LocalService(engine, built, config.temperature, cut=int(config.fault == "short"))
    done: list[Trajectory] = []
    method = ForkJoin(config, service)
    scores = solve(method, list(config.asked()), engine.clock, Listener.to(live), done.append)
    scores.keep(live, engine.clock.now())
    done.sort(key=lambda one: method.problems[one.name].number)
    for name, value in sent(done, service.tokenizer).items():
        live.emit(Level(engine.clock.now(), LANE, name, float(value)))
    lines = [f"{name}\1{text}" for one in done for name, text in one.prompts.items()]
    prompts = np.frombuffer("\0".join(lines).encode(), np.uint8)
    live.keep(engine.clock.now(), "prompts", prompts)
    if config.timed_as:
        seconds_P = timed(config, service.tokenizer, done)
        live.keep(engine.clock.now(), "modelled_seconds_P", seconds_P)


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


def timed(config: ForkJoinConfig, tokenizer: Tokens, done: list[Trajectory]) -> np.ndarray:
    """seconds_P of each trajectory, modelled for the config's device."""
    described = config.described()
    built: Built = described.executor.build(described)
    engine = Engine(described, built.executor, built.clock, lambda _: None)
    return np.array(
        [
            modelled_seconds(one, built, engine, tokenizer, config.limits(), config.marks)
            for one in done
        ]
    )
