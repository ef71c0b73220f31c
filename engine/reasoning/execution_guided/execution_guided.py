"""Execution-guided generation: a program written line by line, each under a signal of what
candidates for it do when they are run (EG-CFG, arXiv 2506.10948).

Before each line several continuations fork from the code so far and are run on the problem's
examples in a sandbox. What they come to goes into the prompt; the line is decoded from the
distributions with it and without it, by classifier-free guidance, and the next line gets a signal
of its own. Candidates are lanes under the program's: read and kept, or read and not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.core.events import Branch, Mark, Span
from engine.core.run import Live
from engine.core.tags import tag
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built
from engine.inference.requests.request import Request, Sampling, sampling
from engine.inference.run import obey, offer
from engine.models.text.tokenizer import Tokenizer
from engine.reasoning.execution_guided.config import ExecutionGuidedConfig
from engine.reasoning.execution_guided.signal import Tried, signal, values_after
from engine.reasoning.solving.by_requests import open_engine
from engine.reasoning.solving.method import Asked, Result
from engine.reasoning.solving.solve import Listener, solve
from engine.tasks.list_programs import ListProgram
from engine.tasks.sandbox.interpreter import Outcome
from engine.tasks.sandbox.sandbox import sandbox

LINE = 8  # tokens of a line, its end included
MOST = 8  # lines of a program


@dataclass(slots=True)
class Candidate:
    """A continuation in its lane: its lines, as many as the horizon has, and what they came to."""

    lane: str
    lines: tuple[str, ...]
    tried: Tried | None = None  # None where it has no line


@dataclass(slots=True)
class Writing:
    """A program under way."""

    asked: Asked
    problem: ListProgram
    code: list[int] = field(default_factory=list)  # tokens kept so far
    text: str = ""
    outcomes: list[Outcome] = field(default_factory=list)  # of its whole lines
    waits: int = 0  # for so many candidates
    drawn: list[Candidate] = field(default_factory=list)
    signal: str = ""
    before: str = ""  # what the signal of the line before should have been
    seen: bool = False  # whether a candidate passed the examples
    over: bool = False
    rounds: int = 0  # of candidates
    requests: int = 0
    positions: int = 0  # computed by the model, in rows of either kind
    generated: int = 0  # tokens
    runs: int = 0  # of a program on an example

    @property
    def lines(self) -> int:
        """Whole lines kept."""
        return self.text.count("\n")


class ExecutionGuided:
    """A method of `solving`: candidates, their signal, a guided line; and so on to the end."""

    def __init__(
        self, config: ExecutionGuidedConfig, engine: Engine, built: Built, live: Live
    ) -> None:
        """Raises BadInput where the model has no tokenizer."""
        if not isinstance(built.tokenizer, Tokenizer):
            raise BadInput(
                f"model {config.model!r}: it has no tokenizer; give one trained for programs"
            )
        self.config, self.engine, self.built, self.live = config, engine, built, live
        self.tokenizer, self.facts = built.tokenizer, built.executor.facts
        self.newline = self.tokenizer.encode("\n")[-1]
        self.going = 0  # programs under way
        self._ended: list[tuple[Writing, Request, bool]] = []

    def room(self) -> bool:
        return self.going < self.config.max_running

    def begin(self, asked: Asked) -> None:
        """Read the problem, and draw the first line's candidates."""
        assert isinstance(asked.problem, ListProgram)
        writing = Writing(asked, asked.problem)
        self.going += 1
        if self.config.guided:
            self._draw(writing)
        else:
            wish = sampling(temperature=self.config.temperature, max_tokens=LINE * MOST)
            self._offer(writing, asked.name, self._prompt(writing), wish)

    def obey(self, command: dict[str, Any]) -> None:
        obey(self.engine, self.built, command)

    def step(self) -> list[Writing]:
        self.engine.step()
        ended, self._ended = self._ended, []
        for writing, request, kept in ended:
            self._count(writing, request)
            if kept:
                self._keep(writing, request)
            else:
                self._drawn(writing, request)
        over = [writing for writing, _, kept in ended if kept and writing.over]
        self.going -= len(over)
        return over

    def asked(self, attempt: Writing) -> Asked:
        return attempt.asked

    def result(self, attempt: Writing) -> Result:
        """`seen`: whether a candidate passed the examples, which plain checking would have kept."""
        verdict = attempt.problem.check(attempt.text)
        figures = {name: getattr(attempt, name) for name in ("positions", "generated", "runs")}
        said = attempt.text.strip().replace("\n", "; ")
        return Result(said, verdict.right, verdict.reason, {"seen": attempt.seen}, figures)

    def _prompt(self, writing: Writing, signal: str = "") -> list[int]:
        """Examples, signal if any, and the code so far."""
        read = self.tokenizer.encode(writing.problem.prompt + signal)
        return [*self.tokenizer.bos, *read, *writing.code]

    def _offer(
        self, writing: Writing, name: str, prompt: list[int], wish: Sampling,
        negative: list[int] | None = None,
    ) -> None:  # fmt: skip
        """A request of the program's own lane, or, under another name, of its candidates."""
        own = name == writing.asked.name
        request = Request(
            np.array(prompt, np.int32), wish, id=name, parent="" if own else writing.asked.name,
            seed=1 + (writing.asked.seed * 1_009 + writing.requests) % (1 << 61),
            negative=None if negative is None else np.array(negative, np.int32),
            on_end=lambda ended: self._ended.append((writing, ended, own)),
        )  # fmt: skip
        writing.requests += 1
        offer(self.engine, request)

    def _count(self, writing: Writing, request: Request) -> None:
        """What a request made the model compute: its prompt, less what was cached, and each token
        but the last; a guided one in both rows."""
        said = len(request.generated)
        forked = request.parent not in ("", writing.asked.name)
        writing.generated += said
        writing.positions += said - 1 + (0 if forked else len(request.prompt) - request.reused)
        if request.negative is not None and request.sampling.guidance != 1.0:
            writing.positions += len(request.negative) + said - 1

    def _draw(self, writing: Writing) -> None:
        """Candidates of the next line: forks of one request that goes on from the code so far."""
        config, name = self.config, writing.asked.name
        writing.drawn, writing.waits = [], config.candidates
        writing.rounds += 1
        if not config.candidates:
            self._steer(writing)
            return
        self._branch(name, "", "waiting", "its candidates are drawn and run")
        wish = sampling(
            temperature=config.spread, n=config.candidates, max_tokens=LINE * config.horizon
        )
        self._offer(writing, f"{name}.{writing.rounds}", self._prompt(writing), wish)

    def _drawn(self, writing: Writing, request: Request) -> None:
        """One more candidate has been drawn; its lines, of which the last may be cut short."""
        tokens = request.generated.tolist()
        text = self.tokenizer.decode([t for t in tokens if t not in self.facts.eos])
        lines = (writing.text + text).split("\n")[writing.lines :]
        if request.reason == "length" and len(lines) > 1:
            lines.pop()
        kept = tuple(line for line in lines[: self.config.horizon] if line)
        writing.drawn.append(Candidate(request.id, kept))
        writing.waits -= 1
        if not writing.waits:
            self._steer(writing)

    def _steer(self, writing: Writing) -> None:
        """Run the candidates, and decode the line under the signal of what they did."""
        config, fault, wait = self.config, self.config.fault, self.engine.clock.now()
        tried = self._tried(writing)
        shown = writing.problem.shown
        now = writing.outcomes or [Outcome([list(start)], "") for start, _ in shown]
        wanted = [end for _, end in shown]
        new = signal(now, [] if fault == "unread" else tried, writing.lines, wanted)
        writing.signal = writing.before if fault == "stale" and writing.before else new
        writing.before = new
        moment, lane = self.engine.clock.now(), writing.asked.name
        facts = tag(candidates=len(tried), examples=len(shown))
        self.live.emit(Span(moment, "sandbox", "run", wait, tag=facts))
        for each in writing.drawn:
            self.live.emit(Mark(moment, each.lane, "outcome", told(each.tried, writing.lines)))
        self.live.emit(Mark(moment, lane, "signal", writing.signal))
        wish = sampling(
            temperature=config.temperature, guidance=config.guidance,
            max_tokens=LINE if config.refresh == "line" else 1, stop_tokens=(self.newline,),
        )  # fmt: skip
        towards, away = self._prompt(writing, writing.signal), self._prompt(writing)
        if fault == "swapped":
            towards, away = away, towards
        self._offer(writing, lane, towards, wish, away)

    def _tried(self, writing: Writing) -> list[Tried]:
        """Different candidates run on the examples, after the code so far, a person's too."""
        if self.config.also:
            lane = f"{writing.asked.name}.{writing.rounds}.also"
            self._branch(lane, writing.asked.name, "running", "a person's")
            writing.drawn.append(Candidate(lane, (self.config.also,)))
        found: dict[tuple[str, ...], Tried] = {}
        for each in writing.drawn:
            if each.lines and each.lines not in found:
                found[each.lines] = Tried(each.lines, tuple(self._run(writing, each.lines)))
                writing.seen |= writing.problem.passes(found[each.lines].outcomes)
            each.tried = found.get(each.lines)
        return list(found.values())

    def _run(self, writing: Writing, lines: Sequence[str]) -> list[Outcome]:
        """The whole lines so far and these, on every example shown."""
        writing.runs += len(writing.problem.shown)
        before = writing.text.split("\n")[: writing.lines]
        outcomes = writing.problem.outcomes("\n".join([*before, *lines]))
        if self.config.fault == "forgiving":
            starts = [start for start, _ in writing.problem.shown]
            pairs = zip(outcomes, starts, strict=True)
            return [Outcome(each.values or [list(start)], "") for each, start in pairs]
        return outcomes

    def _keep(self, writing: Writing, request: Request) -> None:
        """A line, or a part of one, is kept: its candidates are over, the next are drawn."""
        tokens, place = request.generated.tolist(), writing.lines
        ended = not tokens or tokens[-1] in self.facts.eos
        writing.code += tokens[:-1] if ended else tokens
        writing.text = self.tokenizer.decode(writing.code)
        line = writing.text.split("\n")[place]
        why = f"kept: {line}" if line else "kept: no line, the program ends"
        for each in writing.drawn:
            state = "joined" if each.lines[:1] == (line,) else "pruned"
            self._branch(each.lane, writing.asked.name, state, why)
        if not self.config.guided:
            writing.over = True
            return
        whole = writing.lines > place
        if whole:
            writing.outcomes = self._run(writing, ())
            kept = told(Tried((line,), tuple(writing.outcomes)), place)
            self.live.emit(Mark(self.engine.clock.now(), writing.asked.name, "kept", kept))
        unfinished = not whole and self.config.refresh == "line"
        full = len(self._prompt(writing, writing.signal)) + LINE > self.facts.context
        writing.over = (
            ended or unfinished or full or request.state != "finished"
            or writing.lines >= MOST
        )  # fmt: skip
        if not writing.over:
            self._draw(writing)

    def _branch(self, lane: str, parent: str, state: str, why: str) -> None:
        self.live.emit(Branch(self.engine.clock.now(), lane, parent, state, why))


def told(tried: Tried | None, before: int) -> str:
    """A candidate's lines with what each came to, for a person."""
    if tried is None:
        return "no line"
    places = enumerate(tried.lines, before)
    said = ((line, values_after(tried.outcomes, place)) for place, line in places)
    return "; ".join(f"{line} → {values or 'not run'}" for line, values in said)


def run(config: ExecutionGuidedConfig, live: Live) -> None:
    """Write a program for each problem; `live` is where events go and commands come from."""
    engine, built = open_engine(config, live, isolation=sandbox().layers, lanes=["sandbox"])
    method = ExecutionGuided(config, engine, built, live)
    solve(method, list(config.asked()), engine.clock, Listener.to(live)).keep(
        live, engine.clock.now()
    )
