"""Judges: from what two traces of one question have written so far, will they agree?

A judge's config is a policy; opened for a run it compares traces and counts what that costs.
"""

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from random import Random
from typing import Literal, NamedTuple, Protocol

import numpy as np

from engine.core.clock import VirtualClock
from engine.core.config import Policy, knob
from engine.core.errors import BadInput
from engine.inference.executors.costs.forward_work import ForwardWork, Shape
from engine.reasoning.streams.caches import Feed, Stream, StreamCaches
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.loaded_model import open_model

SAME, OTHER = "<same>", "<other>"
PAGE_SIZE = 8


class Trace(NamedTuple):
    """What one thread has written so far."""

    name: str
    text: str


Answers = Callable[[], Mapping[str, str]]  # final answers by thread, found by letting all finish


@dataclass(slots=True)
class Cost:
    """What judging has taken: comparisons, tokens through the judge's model, flops, bytes."""

    comparisons: int = 0
    tokens: int = 0
    flops: float = 0.0
    bytes: float = 0.0

    def since(self, before: "Cost") -> "Cost":
        """What has come on top of `before`."""
        return Cost(
            self.comparisons - before.comparisons, self.tokens - before.tokens,
            self.flops - before.flops, self.bytes - before.bytes,
        )  # fmt: skip


class Judging(Protocol):
    """A judge at work."""

    cost: Cost

    def agree(self, question: str, others: Sequence[Trace], trace: Trace) -> list[float]:
        """How likely `trace` ends in the same answer as each of `others`, from 0 to 1."""

    def forget(self) -> None:
        """The question is over: what was kept for it may go."""


class Judge(Policy):
    """Says whether traces will agree. Frozen and stateless."""

    folder = "engine.reasoning.pruning.judges"

    @abstractmethod
    def open(self, answers: Answers) -> Judging:
        """The judge at work. Only an oracle may ask for `answers`. Raises BadInput."""


class SharedPrefix(Judge):
    """The share of the shorter trace that both begin with. Costs next to nothing."""

    kind: Literal["shared_prefix"] = "shared_prefix"

    def open(self, answers: Answers) -> Judging:
        return _Prefix()


class _Prefix:
    def __init__(self) -> None:
        self.cost = Cost()

    def agree(self, question: str, others: Sequence[Trace], trace: Trace) -> list[float]:
        self.cost.comparisons += len(others)
        return [shared(other.text, trace.text) for other in others]

    def forget(self) -> None:
        pass


def shared(one: str, other: str) -> float:
    """The share of the shorter text that both begin with; 0 where one is empty."""
    shortest = min(len(one), len(other))
    return len(commonprefix([one, other])) / shortest if shortest else 0.0


class EditDistance(Judge):
    """One minus the edit distance (Levenshtein, 1966) as a share of the longer trace."""

    kind: Literal["edit_distance"] = "edit_distance"

    def open(self, answers: Answers) -> Judging:
        return _Edits()


class _Edits:
    def __init__(self) -> None:
        self.cost = Cost()

    def agree(self, question: str, others: Sequence[Trace], trace: Trace) -> list[float]:
        self.cost.comparisons += len(others)
        return [alike(other.text, trace.text) for other in others]

    def forget(self) -> None:
        pass


def alike(one: str, other: str) -> float:
    """1 for equal texts, 0 for texts that have nothing in common."""
    longest = max(len(one), len(other))
    return 1 - distance(one, other) / longest if longest else 1.0


def distance(one: str, other: str) -> int:
    """Letters to be inserted, deleted or replaced to make one text the other."""
    other_L = np.frombuffer(other.encode("utf-32-le"), np.uint32)
    places_L1 = np.arange(len(other_L) + 1)
    row_L1 = places_L1.copy()
    for number, letter in enumerate(one, 1):
        # Insertions chain along the row: a running minimum of cost minus place.
        above = np.minimum(row_L1[1:] + 1, row_L1[:-1] + (other_L != ord(letter)))
        fresh_L1 = np.concatenate([[number], above])
        row_L1 = np.minimum.accumulate(fresh_L1 - places_L1) + places_L1
    return int(row_L1[-1])


class Oracle(Judge):
    """Compares the answers that the traces will give. For checks: knowing them costs everything."""

    kind: Literal["oracle"] = "oracle"
    lies: float = knob(0.0, "Share of comparisons answered wrongly", low=0.0, high=1.0)

    def open(self, answers: Answers) -> Judging:
        return _Knowing(answers, self.lies)


class _Knowing:
    def __init__(self, answers: Answers, lies: float) -> None:
        self.cost, self.lies, self.answers = Cost(), lies, answers()

    def agree(self, question: str, others: Sequence[Trace], trace: Trace) -> list[float]:
        self.cost.comparisons += len(others)
        mine = self.answers[trace.name]
        return [
            float((self.answers[other.name] == mine) != self._lies(other.name, trace.name))
            for other in others
        ]

    def forget(self) -> None:
        pass

    def _lies(self, one: str, other: str) -> bool:
        """The same for the same pair, whenever it is asked."""
        return Random(f"lie {one} {other}").random() < self.lies


class Trained(Judge):
    """The probability of "same" against "other" after both traces, from a paged cache of its own.

    Both traces stand at the same positions behind the question, and the second sees of the first
    what stands no later than itself. So the question is read once, and what others are compared
    with is read once however many are. On its own the shipped one tells hard questions from easy
    ones, hardly traces that differ from traces that do not; `surface` adds that.
    """

    kind: Literal["trained"] = "trained"
    model: str = knob("agreement-100k", "A model trained to judge agreement, or a folder")
    read: int = knob(
        72, "Tokens of a trace that are read; it learnt from no more", low=1, high=4096,
        unit="tokens",
    )  # fmt: skip
    surface: bool = knob(
        True, "Weigh what it says by the share of letters that both traces begin with"
    )
    late: int = knob(
        0, "Comparisons by which its words come late, which is wrong", low=0, high=1 << 20,
        group="faults",
    )  # fmt: skip
    pages: int = knob(1024, "Pages of its cache", low=1, high=1 << 20, log=True)

    def open(self, answers: Answers) -> Judging:
        return _Reading(self)


class _Reading:
    """Traces of one question at a time in the judge's cache. Raises BadInput."""

    def __init__(self, judge: Trained) -> None:
        config = ReasoningConfig(model=judge.model, page_size=PAGE_SIZE, pages=judge.pages)
        loaded = open_model(config)
        if loaded.tokenizer is None:
            raise BadInput(f"judge {judge.model}: has no tokenizer; give one trained to judge")
        ids = [loaded.tokenizer.encode(word) for word in (SAME, OTHER)]
        if any(len(found) != 1 for found in ids):
            raise BadInput(f"judge {judge.model}: does not know {SAME} and {OTHER}")
        self.verdicts = [found[0] for found in ids]
        self.cost, self.most, self.encode = Cost(), judge.read, loaded.tokenizer.encode
        self.surface, self.late = judge.surface, judge.late
        self.words: deque[float] = deque([0.5] * judge.late)  # said and not heard yet
        self.caches = StreamCaches(loaded, VirtualClock(), lambda e: None, tell=False, ahead=True)
        self.work = ForwardWork(loaded.config, "float32")
        self.question = ""
        self.asked: Stream | None = None  # the question, read
        self.kept: dict[str, Stream] = {}  # traces that others were compared with

    def agree(self, question: str, others: Sequence[Trace], trace: Trace) -> list[float]:
        """One forward pass over `trace` beside each of `others`, and over those not read yet."""
        asked = self._ask(question)
        tokens = self._tokens(trace)
        known = {other.name: self._tokens(other) for other in others}
        if not tokens or not all(known.values()):
            return [float(other.text == trace.text) for other in others]  # nothing to go by
        fresh = [name for name in known if name not in self.kept]
        for name in fresh:
            self.kept[name] = self.caches.open(name, asked.length)
        beside = [self.caches.open(trace.name, asked.length) for _ in others]
        seen = asked, asked.length
        feeds = [Feed(self.kept[name], known[name], [seen]) for name in fresh]
        feeds += [
            Feed(stream, tokens, [seen, (self.kept[other.name], len(known[other.name]))])
            for other, stream in zip(others, beside, strict=True)
        ]
        logits_RV = self._write(feeds)[len(fresh) :]
        for stream in beside:
            self.caches.close(stream)
        self.cost.comparisons += len(others)
        said = [
            1 / (1 + math.exp(other - same)) for same, other in logits_RV[:, self.verdicts].tolist()
        ]
        if self.late:
            self.words.extend(said)
            said = [self.words.popleft() for _ in said]
        if not self.surface:
            return said
        return [p * shared(o.text, trace.text) for p, o in zip(said, others, strict=True)]

    def forget(self) -> None:
        """Free the pages of the question and of all its traces."""
        for stream in (self.asked, *self.kept.values()):
            if stream is not None:
                self.caches.close(stream)
        self.caches.streams.clear()
        self.asked, self.kept = None, {}

    def _ask(self, question: str) -> Stream:
        """The question's stream, written when it is first asked."""
        if self.asked is None or self.question != question:
            self.forget()
            self.question, self.asked = question, self.caches.open("question")
            self._write([Feed(self.asked, self.encode(question), ())])
        return self.asked

    def _tokens(self, trace: Trace) -> list[int]:
        return self.encode(trace.text)[: self.most] if trace.text else []

    def _write(self, feeds: Sequence[Feed]) -> np.ndarray:
        logits_RV = self.caches.write(feeds)
        tokens = pairs = touched = 0
        for feed in feeds:
            count = len(feed.tokens)
            tokens += count
            pairs += count * (count + 1) // 2
            touched += count
            for other, seen in feed.sees:
                touched += seen
                ahead = other.begin == feed.stream.begin  # beside: seen as far as one has come
                pairs += min(count, seen) * (count + 1) // 2 if ahead else count * seen
        layers = self.work.config.layers
        flops, moved = self.work.work(Shape(tokens, len(feeds), layers * pairs, layers * touched))
        self.cost.tokens += tokens
        self.cost.flops += flops
        self.cost.bytes += moved
        return logits_RV
