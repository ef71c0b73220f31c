"""Parallel traces of a question, judged once they have begun: those that repeat others are ended.

A question's prompt is computed once and its threads fork from it. When all have written a number of
tokens, a judge's word puts them into clusters; of each cluster a few go on, the rest is pruned for
good, and what was kept votes (DeepPrune, arXiv 2510.08483).
"""

from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from engine.core.errors import BadInput
from engine.core.events import Mark, Span
from engine.core.tags import tag
from engine.reasoning.pruning.clustering import Clusters, ballots, vote
from engine.reasoning.pruning.config import PruningConfig
from engine.reasoning.pruning.judge import Cost, Judging, Trace
from engine.reasoning.threads.reasoner import Reasoner
from engine.reasoning.threads.thread import Thread
from engine.tasks.task import Problem

LANE = "judge"


@dataclass(slots=True)
class Question:
    """A problem and its threads; `clusters` holds them once they have been judged."""

    name: str
    number: int
    problem: Problem
    prompt: list[int]
    threads: list[Thread]
    forked: bool = False
    clusters: list[list[Thread]] = field(default_factory=list)
    judged: bool = False
    cost: Cost = field(default_factory=Cost)  # of judging it

    @property
    def alive(self) -> bool:
        return any(thread.alive for thread in self.threads)

    @property
    def tokens(self) -> int:
        """Tokens that its threads have generated."""
        return sum(len(thread.tokens) for thread in self.threads)


class Pruning:
    """Questions over one reasoner. `begin` some, then `step` until all have come back."""

    def __init__(self, config: PruningConfig, reasoner: Reasoner, judging: Judging | None) -> None:
        """`judging` None lets every trace finish."""
        self.config, self.reasoner, self.judging = config, reasoner, judging
        self.board, self.questions = reasoner.board, list[Question]()

    def room(self) -> bool:
        """Whether another question may begin: always where none is under way."""
        running, each = len(self.board.running), self.config.traces
        coming = sum(each - 1 for question in self.questions if not question.forked)
        most = self.reasoner.config.threads
        return not self.questions or running + coming + each <= most

    def begin(self, number: int, problem: Problem) -> None:
        """Start the thread that reads a problem; the others fork from it once it has.

        Raises BadInput where the prompt fits no context.
        """
        tokenizer = self.reasoner.mind.tokenizer
        if tokenizer is None:
            raise BadInput(f"model {self.config.model!r}: it has no tokenizer")
        prompt = tokenizer.encode(problem.prompt + self.config.ask)
        context = self.reasoner.mind.config.max_positions
        if not 1 <= len(prompt) < context:
            raise BadInput(f"prompt: {len(prompt)} tokens; the model takes 1 to {context - 1}")
        root = self.board.start(f"p{number}", prompt.copy(), alone=True)
        root.seed = self._seed(number, 0)
        self.questions.append(Question(root.name, number, problem, prompt, [root]))

    def step(self) -> list[Question]:
        """One token for every running thread; the questions that are over now."""
        self.reasoner.step()
        for question in self.questions:
            if len(question.threads) < self.config.traces and not question.forked:
                self._fork(question)
            if self.judging and not question.judged and self._due(question):
                self._judge(question)
        over = [question for question in self.questions if not question.alive]
        self.questions = [question for question in self.questions if question.alive]
        return over

    def answers(self, question: Question) -> dict[str, str]:
        """What each finished thread answers, "" where it cannot be read."""
        text, check = self.reasoner.pieces.text, question.problem.check
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
        text, check = self.reasoner.pieces.text, question.problem.check
        ended = (thread for thread in question.threads if thread.state == "finished")
        verdicts = (check(text(thread.tokens)) for thread in ended)
        return any(verdict.right for verdict in verdicts if verdict.answer == answer)

    def _fork(self, question: Question) -> None:
        """The other threads share the prompt's pages and draw their first token themselves."""
        question.forked, root = True, question.threads[0]
        for place in range(1, self.config.traces):
            try:
                thread = self.board.fork(root.name)
            except BadInput as fault:
                self.board.emit(Mark(self.board.clock.now(), root.name, "refuse", str(fault)))
                return
            # The prompt's last token is fed again, into a page of one's own.
            thread.block.length, thread.block.borrowed = len(question.prompt) - 1, True
            thread.feed, thread.depth = question.prompt[-1:], 0
            thread.seed = self._seed(question.number, place)
            question.threads.append(thread)

    def _seed(self, number: int, place: int) -> int:
        """Of a thread's draws: the same in every run with these traces."""
        return (self.config.seed * 1_000_003 + number) * 256 + place

    def _due(self, question: Question) -> bool:
        """Whether all that go on have written enough, and one does go on."""
        running = [thread for thread in question.threads if thread.alive]
        enough = self.config.after
        return bool(running) and 0 < enough <= min(len(thread.tokens) for thread in running)

    def _judge(self, question: Question) -> None:
        """Cluster the threads in their order, and end those that repeat what goes on."""
        judging, board, clock = self.judging, self.board, self.reasoner.clock
        assert judging is not None
        begun = replace(judging.cost)
        chance = Random(f"{self.config.seed} {question.number}")
        clusters: Clusters[Thread] = Clusters(self.config.clustering, chance)
        for thread in question.threads:
            if thread.state not in ("running", "waiting", "finished"):
                continue  # a person or a full cache has ended it: it is nobody's peer
            start, before = clock.now(), replace(judging.cost)
            place, sure = clusters.place(thread, partial(self._agree, question, thread))
            group = clusters.groups[place]
            now = clock.now()
            spent = judging.cost.since(before)
            facts = tag(comparisons=spent.comparisons, tokens=spent.tokens)
            board.emit(Span(now, LANE, "judge", start, spent.flops, spent.bytes, facts))
            if thread.alive and len(group) > self.config.keep:
                said = f"{sure:.0%} sure to agree with {group[0].name}"
                board.prune(thread.name, said)
        question.judged, question.clusters = True, clusters.groups
        question.cost = judging.cost.since(begun)
        judging.forget()

    def _agree(self, question: Question, thread: Thread, others: list[Thread]) -> list[float]:
        assert self.judging is not None
        asked = question.problem.prompt
        return self.judging.agree(asked, [self._trace(o) for o in others], self._trace(thread))

    def _trace(self, thread: Thread) -> Trace:
        """What the judge may read of it: as much of each."""
        shown = self.reasoner.pieces.text(thread.tokens[: self.config.after])
        return Trace(thread.name, shown)
