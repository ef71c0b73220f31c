"""Pruning: parallel traces of a question, judged once begun; those that repeat others are ended.

A question's prompt is computed once and its threads fork from it. When all have written a number of
tokens, a judge's word puts them into clusters; of each cluster a few go on, the rest is pruned for
good, and what was kept votes (DeepPrune, arXiv 2510.08483). In the lane `judge` there is a span for
each trace judged.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Literal, NamedTuple

from engine.core.clock import VirtualClock
from engine.core.config import Choice, knob
from engine.core.errors import BadInput
from engine.core.events import Mark, Span
from engine.core.names import counted
from engine.core.run import Live
from engine.core.tags import tag
from engine.inference.requests.request import Sampling
from engine.reasoning.pruning.clustering import Clustering, Clusters, ballots
from engine.reasoning.pruning.judges import Cost, Judge, Judging, Trace, Trained
from engine.reasoning.solving.config import ThreadGroupConfig
from engine.reasoning.solving.method import Asked, Result
from engine.reasoning.solving.solve import LANE as PROBLEMS
from engine.reasoning.solving.solve import Listener, drive, load, solve
from engine.reasoning.solving.thread_groups import ThreadGroup, ThreadMethod
from engine.reasoning.solving.vote import vote
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.loaded_model import LoadedModel
from engine.reasoning.threads.reasoner import Reasoner
from engine.reasoning.threads.thread import Thread
from engine.tasks.part_sums import SERIAL, PartSums
from engine.tasks.task import Problem, Task

LANE = "judge"
Report = Callable[[str, float, float], None]


class PruningConfig(ThreadGroupConfig):
    """A model, questions it has never seen, how many traces each gets, and who judges them."""

    gone = ("sweep",)
    model: str = knob("part-sums-500k", "A shipped model of the task, or a folder")
    task: Choice[Task] = knob(make=lambda: PartSums(parts=3, entries=5), doc="What is asked")
    ask: str = knob(SERIAL, "What stands behind a problem to ask for its traces")
    traces: int = knob(16, "Threads that think about each problem", low=1, high=256, log=True)
    sampling: Sampling = knob(
        make=lambda: Sampling(temperature=1.5), doc="How tokens are drawn", group="sampling"
    )
    after: int = knob(
        40, "Tokens of a trace after which it is judged; 0: never", low=0, high=1 << 20,
        unit="tokens", called="Judged after")  # fmt: skip
    judge: Choice[Judge] = knob(make=Trained, doc="Who says whether two traces will agree")
    clustering: Clustering = knob(make=Clustering, doc="When a trace is said to repeat others")
    keep: int = knob(3, "Traces of each cluster that go on to the end", low=1, high=256)
    weighted: bool = knob(
        True, "What goes on votes for its whole cluster; off: for itself", group="vote"
    )
    fault: Literal["none", "prune_lost", "none_kept"] = knob(
        "none", "What goes wrong: the word that ends a trace does not arrive, or it reaches those "
        "that should go on too", group="faults",
    )  # fmt: skip
    longest: int = knob(
        160, "Tokens of a trace at most", low=1, high=1 << 20, unit="tokens", group="budget"
    )
    threads: int = knob(64, "Threads that may run at once", low=1, high=1024, group="budget")
    page_size: int = knob(8, "Tokens in a page", low=1, high=256, unit="tokens", group="cache")
    pages: int = knob(2048, "Pages of the cache", low=1, high=1 << 22, group="cache", log=True)

    def drawn(self) -> Iterable[tuple[int, Problem]]:
        return enumerate(self.task.problems("test", self.problems, self.first))

    def reasoning(self) -> ReasoningConfig:
        return self.threads_with(budget=self.longest, threads=max(self.threads, self.traces))


@dataclass(slots=True)
class Question(ThreadGroup):
    """A problem and its traces, its root's too; `clusters` holds them once they are judged."""

    forked: bool = False
    clusters: list[list[Thread]] = field(default_factory=list)
    judged: bool = False
    cost: Cost = field(default_factory=Cost)  # of judging it


class Pruning(ThreadMethod[PruningConfig, Question]):
    """Forks every trace once the prompt is read, and prunes what the judge says repeats others."""

    def __init__(
        self, config: PruningConfig, reasoner: Reasoner, judging: Judging | None = None
    ) -> None:
        """`judging` None lets every trace finish."""
        super().__init__(config, reasoner)
        self.judging = judging
        self.ids: dict[str, int] = {"": -1}  # of answers, as they were first given

    @property
    def width(self) -> int:
        return self.config.traces

    def prompt(self, problem: Problem) -> list[int]:
        return self.tokenizer.encode(problem.prompt + self.config.ask)

    def open(self, asked: Asked, prompt: list[int], root: Thread) -> Question:
        root.seed = self._seed(asked, 0)
        return Question(asked, prompt, root)

    def advance(self, question: Question) -> None:
        if not question.forked:
            self._fork(question)
        if self.judging and not question.judged and self._due(question):
            self._judge(question, self.judging)

    def over(self, question: Question) -> bool:
        """The root is a trace like the others."""
        return not question.alive

    def answers(self, question: Question) -> dict[str, str]:
        """What each finished thread answers, "" where it cannot be read."""
        text, check = self.reasoner.pieces.text, question.asked.problem.check
        return {
            thread.name: check(text(thread.tokens)).answer
            for thread in question.threads
            if thread.state == "finished"
        }

    def voted(self, question: Question) -> str:
        """The answer of most votes; what finished may vote for its whole cluster."""
        answers = self.answers(question)
        groups = question.clusters or [[thread] for thread in question.threads]
        said = ([answers.get(thread.name) for thread in group] for group in groups)
        return vote(ballots(said, self.config.weighted))

    def is_right(self, question: Question, answer: str) -> bool:
        """Whether a trace that has finished with this answer is right."""
        text, check = self.reasoner.pieces.text, question.asked.problem.check
        ended = (thread for thread in question.threads if thread.state == "finished")
        verdicts = (check(text(thread.tokens)) for thread in ended)
        return any(verdict.right for verdict in verdicts if verdict.answer == answer)

    def result(self, question: Question) -> Result:
        """The vote. Of threads: answers as numbers, equal where they are, and cluster numbers."""
        answer, clusters, cost = self.voted(question), question.clusters, question.cost
        judged = counted(len(clusters), "cluster") if question.judged else "not judged"
        told = f"{len(question.threads)} traces, {judged}, the vote is for {answer or 'nothing'}"
        self.table.emit(
            Mark(self.reasoner.clock.now(), PROBLEMS, "vote", f"{question.name}: {told}")
        )
        answers = self.answers(question)
        place = {thread: number for number, group in enumerate(clusters) for thread in group}
        threads = question.threads
        given = [answers.get(thread.name, "") for thread in threads]
        return Result(
            answer,
            self.is_right(question, answer),
            figures={
                "tokens": question.tokens,
                "clusters": len(clusters),
                "judge tokens": cost.tokens,
                "comparisons": cost.comparisons,
                "pruned": sum(thread.state == "pruned" for thread in threads),
                "answer by thread": [self.ids.setdefault(one, len(self.ids) - 1) for one in given],
                "cluster by thread": [place.get(thread, -1) for thread in threads],
                "tokens by thread": [len(thread.tokens) for thread in threads],
            },
        )

    def _fork(self, question: Question) -> None:
        """The other threads share the prompt's pages and draw their first token themselves."""
        question.forked, root = True, question.root
        for place in range(1, self.config.traces):
            try:
                thread = self.table.fork(root.name)
            except BadInput as fault:
                self.tell(root, "refuse", str(fault))
                return
            # The prompt's last token is fed again, into a page of one's own.
            thread.block.length, thread.block.borrowed = len(question.prompt) - 1, True
            thread.feed, thread.depth = question.prompt[-1:], 0
            thread.seed = self._seed(question.asked, place)
            question.children.append(thread)

    def _seed(self, asked: Asked, place: int) -> int:
        """Of a thread's draws: the same in every run with these traces."""
        return asked.seed * 256 + place

    def _due(self, question: Question) -> bool:
        """Whether all that go on have written enough, and one does go on."""
        enough = self.config.after
        alive = question.alive
        return bool(alive) and 0 < enough <= min(len(thread.tokens) for thread in alive)

    def _judge(self, question: Question, judging: Judging) -> None:
        """Cluster the threads in their order, and end those that repeat what goes on."""
        table, clock, begun = self.table, self.reasoner.clock, replace(judging.cost)
        chance = Random(f"{self.config.seed} {question.asked.number}")
        clusters: Clusters[Thread] = Clusters(self.config.clustering, chance)
        for thread in question.threads:
            if thread.state not in ("running", "waiting", "finished"):
                continue  # a person or a full cache has ended it: it is nobody's peer
            start, before = clock.now(), replace(judging.cost)
            place, sure = clusters.place(thread, partial(self._agree, question, judging, thread))
            group = clusters.groups[place]
            now = clock.now()
            spent = judging.cost.since(before)
            facts = tag(comparisons=spent.comparisons, tokens=spent.tokens)
            table.emit(Span(now, LANE, "judge", start, spent.flops, spent.bytes, facts))
            keep = {"prune_lost": len(group), "none_kept": 0}.get(
                self.config.fault, self.config.keep
            )
            if thread.alive and len(group) > keep:
                said = f"{sure:.0%} sure to agree with {group[0].name}"
                table.prune(thread.name, said)
        question.judged, question.clusters = True, clusters.groups
        question.cost = judging.cost.since(begun)
        judging.forget()

    def _agree(
        self, question: Question, judging: Judging, thread: Thread, others: list[Thread]
    ) -> list[float]:
        asked = question.asked.problem.prompt
        return judging.agree(asked, [self._trace(other) for other in others], self._trace(thread))

    def _trace(self, thread: Thread) -> Trace:
        """What the judge may read of it: as much of each."""
        shown = self.reasoner.pieces.text(thread.tokens[: self.config.after])
        return Trace(thread.name, shown)


class FinishedTrace(NamedTuple):
    """A trace that was let finish; `answer` "" where it cannot be read."""

    name: str
    tokens: list[int]
    answer: str
    right: bool


def finished_traces(
    config: PruningConfig,
    loaded: LoadedModel,
    problems: Sequence[Asked],
    report: Report = lambda what, done, total: None,
) -> list[list[FinishedTrace]]:
    """The traces of each problem in the order of its threads."""
    clock, traces = VirtualClock(), dict[int, list[FinishedTrace]]()
    reasoner = Reasoner(config.reasoning(), loaded, clock, lambda event: None)

    def take(question: Question) -> None:
        check, text = question.asked.problem.check, reasoner.pieces.text
        verdicts = [check(text(thread.tokens)) for thread in question.threads]
        traces[question.asked.number] = [
            FinishedTrace(thread.name, thread.tokens, verdict.answer, verdict.right)
            for thread, verdict in zip(question.threads, verdicts, strict=True)
        ]

    nobody = Listener.silent()._replace(report=report)
    solve(Pruning(config, reasoner), problems, clock, nobody, take)
    return [traces[one.number] for one in problems]


def run(config: PruningConfig, live: Live) -> None:
    """Answer the config's questions; `live` is where events go and commands come from."""
    loaded = load(config, live)

    def answers() -> dict[str, str]:
        def report(_: str, done: float, total: float) -> None:
            live.report("letting all traces finish, unseen", done, total)

        traces = finished_traces(config, loaded, list(config.asked()), report)
        return {trace.name: trace.answer for some in traces for trace in some}

    judging = config.judge.open(answers) if config.after else None
    drive(config, live, loaded, lambda reasoner: Pruning(config, reasoner, judging))
