"""Repeated sampling: many answers to each test problem through one paged batch, then verified.

In comes a config, out come every sample's verdict and, of all problems, which samples are right,
accepted and equal (Brown et al., arXiv 2407.21787). Shape letters: P problems, N samples of each.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from engine.core.config import Choice, knob
from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Branch, Level, Mark
from engine.core.plot import Plot
from engine.core.run import Live
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built
from engine.inference.requests.request import Request, sampling
from engine.inference.run import obey, offer
from engine.models.text.tokenizer import Tokenizer
from engine.reasoning.repeated_sampling.verifiers import Checker, Verifier
from engine.reasoning.solving.by_requests import RequestConfig, open_engine
from engine.reasoning.solving.method import Asked, Result
from engine.reasoning.solving.solve import LANE, Listener, silent, solve
from engine.tasks.arithmetic import Arithmetic
from engine.tasks.task import Task, Verdict

LOOKS = 4  # times the curves are drawn while samples come in
Curves = Mapping[tuple[Plot, str], np.ndarray]  # points [2 or 4, K], by plot and series


class RepeatedSamplingConfig(RequestConfig):
    """A model, problems it has never seen, how often each is asked, and who accepts answers."""

    model: str = knob("multiply-1m", "A shipped model of the task, or a folder")
    seed: int = knob(0, "Seed of the samples", low=0, high=2**31 - 1)
    task: Choice[Task] = knob(make=Arithmetic, doc="What is asked")
    problems: int = knob(24, "Test problems", low=1, high=100_000, log=True)
    first: int = knob(0, "Seed of the first problem", low=0, high=2**31 - 1)
    samples: int = knob(64, "Answers to each problem", low=2, high=1024, log=True)
    temperature: float = knob(0.6, "0 takes the likeliest token", low=0.0, high=10.0)
    top_p: float = knob(1.0, "Keep the likeliest tokens up to this mass", low=1e-9, high=1.0)
    verifier: Choice[Verifier] = knob(make=Checker, doc="Who says that an answer is right")
    estimator: Literal["unbiased", "plug_in"] = knob(
        "unbiased", "Coverage at k from n samples: over all subsets, or 1 - (1 - c/n)^k"
    )
    fitted: float = knob(
        0.25, "The law is fitted to k up to this share of the samples", low=0.01, high=1.0
    )

    tokens: bool = knob(
        True, "Record every token, step and page; without: requests, verdicts and curves alone"
    )
    max_tokens: int = knob(
        16, "Tokens of an answer at most", low=1, high=4096, unit="tokens", group="engine"
    )
    fork: bool = knob(
        True, "Samples fork from one prompt; off: each sample brings its own", group="engine"
    )
    fault: Literal["none", "one_seed"] = knob(
        "none", "What goes wrong with the draws: all samples draw by one seed", group="faults"
    )
    page_size: int = knob(8, "Tokens in a page", low=1, high=256, unit="tokens", group="engine")
    pages: int = knob(1024, "Pages of the cache", low=1, high=1 << 22, group="engine", log=True)
    max_running: int = knob(
        256,
        "Samples in the batch at most",
        low=1,
        high=8192,
        group="engine",
        called="Samples at once",
    )

    def serving(self, **changes: Any) -> InferenceConfig:
        step = {"max_running": self.max_running, "step_tokens": 2 * self.max_running}
        return super().serving(**step, **changes)


@dataclass(slots=True)
class Samples:
    """A problem and what came back so far: each sample's verdict, and whether it is accepted."""

    asked: Asked
    verdicts: list[tuple[Verdict, bool]] = field(default_factory=list)

    @property
    def accepted(self) -> list[Verdict]:
        """Those that the verifier accepts, as they came."""
        return [verdict for verdict, accepted in self.verdicts if accepted]


class RepeatedSampling:
    """A method of `solving`: each problem asked so many times, all of them in one batch.

    A sample is told of as it ends, in the lane of its request, and the curves now and then; the
    problems' counter is `solved`.
    """

    def __init__(
        self, config: RepeatedSamplingConfig, engine: Engine, built: Built, live: Live,
        curves: Callable[..., Curves],
    ) -> None:  # fmt: skip
        if not isinstance(built.tokenizer, Tokenizer):
            raise BadInput(
                f"model {config.model!r}: it has no tokenizer; give one trained for a task"
            )
        self.config, self.engine, self.built, self.live = config, engine, built, live
        self.curves = curves
        self.tokenizer = built.tokenizer
        self.begun: list[Samples] = []
        self.solved = 0  # problems with an accepted sample
        self._over: list[Samples] = []

    def room(self) -> bool:
        return True  # requests wait in the engine

    def begin(self, asked: Asked) -> None:
        """A request forked after its prompt, or one for each sample.

        Their threads are named after the problem: p3, p3.1, p3.2 …
        """
        config, samples = self.config, Samples(asked)
        self.begun.append(samples)
        one_seed = config.fault == "one_seed"
        forked = config.samples if config.fork and not one_seed else 1
        wish = sampling(
            temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens,
            n=forked, seed=config.seed if one_seed else None,
        )  # fmt: skip
        tokens = [*self.tokenizer.bos, *self.tokenizer.encode(asked.problem.prompt)]
        for own in range(config.samples // forked):
            name = f"{asked.name}.{own}" if own else asked.name
            ended = partial(self._take, samples)
            offer(self.engine, Request(np.array(tokens, np.int32), wish, id=name, on_end=ended))

    def obey(self, command: dict[str, Any]) -> None:
        obey(self.engine, self.built, command)

    def step(self) -> list[Samples]:
        self.engine.step()
        over, self._over = self._over, []
        return over

    def asked(self, attempt: Samples) -> Asked:
        return attempt.asked

    def result(self, attempt: Samples) -> Result:
        """The first accepted answer; whether any sample is right."""
        chosen = next(iter(attempt.accepted), Verdict(False, "nothing is accepted"))
        right = [verdict.right for verdict, _ in attempt.verdicts]
        return Result(chosen.answer, chosen.right, chosen.reason, {"covered": any(right)})

    def _take(self, samples: Samples, request: Request) -> None:
        """One more sample has ended."""
        problem, now = samples.asked.problem, self.engine.clock.now()
        verdict = problem.check(request.text)
        accepted = self.config.verifier.accepts(problem, request.text)
        name = "right" if verdict.right else "accepted but wrong" if accepted else "wrong"
        self.live.emit(Mark(now, request.id, name, verdict.reason))
        if accepted and not samples.accepted:
            self.solved += 1
            self.live.emit(Level(now, LANE, "solved", float(self.solved)))
        samples.verdicts.append((verdict, accepted))
        if len(samples.verdicts) == self.config.samples:
            self._over.append(samples)
            if len(self.whole) % max(1, len(self.begun) // LOOKS) == 0:
                self.draw(now)

    @property
    def whole(self) -> list[Samples]:
        """The problems all of whose samples are there."""
        return [one for one in self.begun if len(one.verdicts) == self.config.samples]

    def draw(self, now: float) -> None:
        """Keep, and draw, what there is of all problems whose samples are all there."""
        arrays = self.arrays()
        for name, array in arrays.items():
            self.live.keep(now, name, array)
        for (plot, series), points in self.curves(self.config, **arrays).items():
            self.live.curve(now, plot, series, points)

    def arrays(self) -> dict[str, np.ndarray]:
        """uint8 right_PN, accepted_PN; int64 answer_PN, equal for equal answers, -1 for none."""
        rows, ids = [one.verdicts for one in self.whole], {"": -1}
        answers = [[ids.setdefault(each.answer, len(ids)) for each, _ in row] for row in rows]
        return {
            "right_PN": np.array([[each.right for each, _ in row] for row in rows], np.uint8),
            "accepted_PN": np.array([[ok for _, ok in row] for row in rows], np.uint8),
            "answer_PN": np.array(answers, np.int64),
        }


def run(
    config: RepeatedSamplingConfig, live: Live, plots: Sequence[Plot] = (),
    curves: Callable[..., Curves] = lambda config, **arrays: {},
) -> None:  # fmt: skip
    """Ask every problem `samples` times; `live` is where events go and commands come from.

    `curves` draws on `plots`, now and then, what has come in: given the config and the arrays of
    `RepeatedSampling.arrays`.
    """
    count = config.problems * config.samples

    def of_requests(event: AnyEvent) -> None:
        if isinstance(event, Branch):
            live.emit(event)

    emit = live.emit if config.tokens else of_requests
    engine, built = open_engine(
        config,
        live,
        emit,
        plots=plots,
        requests=count,
        question="How much does each further sample find?",
    )
    method = RepeatedSampling(config, engine, built, live, curves)
    solve(method, list(config.asked()), engine.clock, Listener.to(live), tell=silent)
    method.draw(engine.clock.now())
