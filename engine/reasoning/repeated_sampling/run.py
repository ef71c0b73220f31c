"""Repeated sampling: many answers to each test problem through one paged batch, then verified.

In comes a config, out come every sample's verdict and the curves of coverage, verified choice and
majority vote over the number of samples (Brown et al., arXiv 2407.21787).
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from engine.core.clock import Clock
from engine.core.errors import BadInput
from engine.core.events import Level, Mark
from engine.core.run import Live
from engine.inference.engine import Engine
from engine.inference.executor import Built
from engine.inference.request import Request, sampling
from engine.inference.run import serve
from engine.models.text.tokenizer import Tokenizer
from engine.reasoning.repeated_sampling.config import RepeatedSamplingConfig
from engine.reasoning.repeated_sampling.curves import LAW, SOLVED, curves
from engine.tasks.task import Problem

LOOKS = 4  # times the curves are drawn while samples come in


@dataclass(slots=True)
class Samples:
    """What came back so far: (right, accepted, answer) of each problem's samples."""

    config: RepeatedSamplingConfig
    live: Live
    problems: list[Problem]
    clock: Clock
    taken: list[list[tuple[bool, bool, str]]] = field(default_factory=list)
    whole: int = 0  # problems all of whose samples are there
    solved: int = 0  # … with an accepted one
    count: int = 0

    def __post_init__(self) -> None:
        self.taken = [[] for _ in self.problems]

    def take(self, place: int, request: Request) -> None:
        """One more sample of the problem at `place` has ended."""
        problem, mine, now = self.problems[place], self.taken[place], self.clock.now()
        verdict = problem.check(request.text)
        accepted = self.config.verifier.accepts(problem, request.text)
        name = "right" if verdict.right else "accepted but wrong" if accepted else "wrong"
        self.live.emit(Mark(now, request.id, name, verdict.reason))
        if accepted and not any(before for _, before, _ in mine):
            self.solved += 1
            self.live.emit(Level(now, "problems", "solved", float(self.solved)))
        mine.append((verdict.right, accepted, verdict.answer))
        self.count += 1
        if len(mine) == self.config.samples:
            self.whole += 1
            if self.whole % max(1, len(self.problems) // LOOKS) == 0:
                self.draw(now)

    def draw(self, now: float) -> None:
        """Tell the curves over all problems whose samples are all there."""
        arrays = self.arrays()
        for name, array in arrays.items():
            self.live.keep(now, name, array)
        for (plot, series), points in curves(self.config, **arrays).items():
            self.live.curve(now, plot, series, points)

    def arrays(self) -> dict[str, np.ndarray]:
        """uint8 right_PN, accepted_PN; int64 answer_PN, equal for equal answers, -1 for none."""
        whole = [one for one in self.taken if len(one) == self.config.samples]
        ids: dict[str, int] = {"": -1}
        answers = [[ids.setdefault(answer, len(ids)) for *_, answer in one] for one in whole]
        return {
            "right_PN": np.array([[right for right, _, _ in one] for one in whole], np.uint8),
            "accepted_PN": np.array([[ok for _, ok, _ in one] for one in whole], np.uint8),
            "answer_PN": np.array(answers, np.int64),
        }


def run(config: RepeatedSamplingConfig, live: Live) -> None:
    """Ask every problem `samples` times; `live` is where events go and commands come from."""
    live.report("opening the model", 0, 0)
    serving = config.serving()
    built = serving.executor.build(serving)
    problems = list(config.task.problems("test", config.problems, config.first))
    live.open(
        config,
        built.clock,
        plots=[SOLVED, LAW],
        pages=config.pages,
        page_size=config.page_size,
        **built.executor.facts.header(),
        requests=config.problems * config.samples,
        commands=["abort"],
    )
    engine = Engine(serving, built.executor, built.clock, live.emit, built.tokenizer)
    samples = Samples(config, live, problems, engine.clock)
    serve(engine, built, asked(config, built, samples), live)
    samples.draw(built.clock.now())


def asked(config: RepeatedSamplingConfig, built: Built, samples: Samples) -> list[Request]:
    """A request for each problem, forked after its prompt, or one for each sample.

    Their threads are named after the problem: p3, p3.1, p3.2 …
    """
    forked = config.samples if config.fork else 1
    wish = sampling(
        temperature=config.temperature,
        top_p=config.top_p,
        max_tokens=config.max_tokens,
        n=forked,
    )
    tokenizer = built.tokenizer
    if not isinstance(tokenizer, Tokenizer):
        raise BadInput(f"model {config.model!r}: it has no tokenizer; give one trained for a task")
    requests = []
    for place, problem in enumerate(samples.problems):
        tokens = np.array([*tokenizer.bos, *tokenizer.encode(problem.prompt)], np.int32)
        for own in range(config.samples // forked):
            name = f"p{place}.{own}" if own else f"p{place}"
            requests.append(Request(tokens, wish, id=name, on_end=partial(samples.take, place)))
    return requests
