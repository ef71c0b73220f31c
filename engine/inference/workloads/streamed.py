"""Streamed inputs: the context of a query comes in chunks while it is retrieved, and what has come
is computed meanwhile (Stream2LLM, MLSys 2026, abstract).

Each state of a query's input is a request that replaces the one before it, under its name; all but
the last ask for one token, as prefill instances do. What a new state has in common with one before
is found in the prefix tree, up to whole pages.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from engine.core.config import knob
from engine.inference.requests.request import Request
from engine.inference.workloads.synthetic import Lengths, affordable, arrivals, split
from engine.inference.workloads.workload import Source, Workload


class State(NamedTuple):
    """A query's input from `time` (s) on: tokens, int32."""

    time: float
    tokens: np.ndarray


class Streamed(Workload):
    """Queries whose context grows chunk by chunk (`append`), or is a list of chunks of which a
    later look finds a better one at some place (`update`): all behind that place is another input.
    """

    kind: Literal["streamed"] = "streamed"
    count: int = knob(40, "Queries", low=1, high=100_000, log=True)
    rate: float = knob(
        1.0, "Queries; 0 brings all at once", low=0.0, high=1e6, unit="1/s", called="Arrival rate"
    )
    mode: Literal["append", "update"] = knob("append", "How context comes")
    chunks: int = knob(
        10, "Half of the queries get fewer; updates count, too", low=1, high=10_000, unit="chunks"
    )
    spread: float = knob(0.4, "Of that, standard deviation of the logarithm", low=0.0, high=4.0)
    chunk: Lengths = knob(Lengths(median=800), "Tokens of a chunk")
    listed: int = knob(10, "Chunks of an input that is updated", low=1, high=1000, unit="chunks")
    kept: float = knob(0.0, "Of those, the part from the first on that no update changes", low=0.0,
                       high=1.0)  # fmt: skip
    gap: float = knob(0.5, "Mean time between chunks", low=0.0, high=1e6, unit="s")
    gap_spread: float = knob(
        0.0, "Of that, standard deviation of the logarithm; 0: times are exponential",
        low=0.0, high=4.0, called="Spread of times between chunks",
    )  # fmt: skip
    question: Lengths = knob(Lengths(median=50), "Tokens of the query, before its context")
    output: Lengths = knob(Lengths(median=1), "Answer lengths")
    streaming: bool = knob(True, "Chunks are computed as they come, else once all are there")
    first: Literal["query", "oldest", "last_chunk", "most_chunks"] = knob(
        "last_chunk", "Who has priority: the oldest query, complete or not; queries whose context "
        "is complete, and of these and of the others the oldest, or who got a chunk longest ago; "
        "who has most chunks",
    )  # fmt: skip
    fault: Literal["none", "lost", "newest", "kept"] = knob(
        "none", "What goes wrong: the last state of an input does not replace the one before, who "
        "got a chunk last goes first, or no state replaces another and all are computed, as if "
        "complete",
        group="faults",
    )  # fmt: skip

    def requests(self, source: Source, seed: int) -> list[Request]:
        random = np.random.default_rng([seed, 11])
        begin = arrivals(random, self.count, self.rate)
        answers = self.output.draw(random, self.count)
        found: list[Request] = []
        total = 0
        for query in range(self.count):
            states = []
            for state in self._states(random, query, float(begin[query]), source.vocab, seed):
                total += len(state.tokens)
                affordable(total)
                states.append(state)
            found += self._versions(source, query, states, int(answers[query]))
        return sorted(found, key=lambda request: request.arrival)

    def _states(
        self, random: np.random.Generator, query: int, time: float, vocab: int, seed: int
    ) -> Iterator[State]:
        """A query's inputs, one after another."""
        size = int(self.question.draw(random, 1)[0])
        steps = int(Lengths(median=self.chunks, spread=self.spread).draw(random, 1)[0])
        count = steps if self.mode == "append" else steps - 1 + self.listed
        lengths = np.append(size, self.chunk.draw(random, count))
        own = query * 100_000 + np.arange(len(lengths))
        question, *chunks = split(seed, lengths, vocab, own)
        times = time + np.cumsum(self._gaps(random, steps))
        if self.mode == "append":
            for n, moment in enumerate(times, 1):
                yield State(float(moment), np.concatenate([question, *chunks[:n]]))
            return
        listed, better = chunks[: self.listed], chunks[self.listed :]
        yield State(float(times[0]), np.concatenate([question, *listed]))
        for moment, one in zip(times[1:], better, strict=True):
            kept = min(int(self.kept * len(listed)), len(listed) - 1)
            listed[int(random.integers(kept, len(listed)))] = one
            yield State(float(moment), np.concatenate([question, *listed]))

    def _gaps(self, random: np.random.Generator, count: int) -> np.ndarray:
        """Seconds before each chunk."""
        if not self.gap_spread:
            return random.exponential(self.gap, count)
        return self.gap * np.exp(random.normal(-(self.gap_spread**2) / 2, self.gap_spread, count))

    def _versions(
        self, source: Source, query: int, states: list[State], answer: int
    ) -> Iterator[Request]:
        """A request for each state that is computed, the last of which is the query's own."""
        before: Request | None = None
        if self.fault == "lost" and len(states) > 1:
            states = [*states[:-1], State(states[-1].time, states[-2].tokens)]
        last = len(states)
        for number, state in enumerate(states, 1):
            if number < last and not self.streaming:
                continue
            is_apart = self.fault == "kept" and number < last
            whole = number if is_apart else last  # a request that nothing replaces is complete
            made = source.request(
                state.tokens, answer if number == last else 1, state.time,
                id=f"q{query} {number}" if is_apart else f"q{query}",
                priority=self._priority(query, number, whole, state.time), replaces=before,
            )  # fmt: skip
            before = None if is_apart else made
            yield made

    def _priority(self, query: int, number: int, last: int, time: float) -> int:
        """Higher goes first, of equals who came first."""
        if self.fault == "newest":
            return int(time * 1e6)
        if self.first == "query":
            return -query
        if self.first == "most_chunks":
            return number
        complete = int(number == last)
        return self.count * complete - query if self.first == "oldest" else complete
