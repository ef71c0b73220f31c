"""A recorded trace: requests as they really arrived, from a file in a public layout."""

import os.path
from pathlib import Path
from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.inference.requests.request import Request
from engine.inference.workloads.synthetic import affordable, arrivals, split, tokens
from engine.inference.workloads.traces.read import Trace, load
from engine.inference.workloads.traces.records import BLOCK, Traced
from engine.inference.workloads.workload import Source, Workload

LETTERS = 4  # characters a token has on average, where text must do without a tokenizer


class FromTrace(Workload):
    """Part of a trace, faster or slower, shorter or whole. Equal prefixes stay equal tokens."""

    kind: Literal["trace"] = "trace"
    file: str = knob("azure-like.csv", "A file, or a trace of datasets/workloads")
    format: Literal["auto", "azure", "burstgpt", "mooncake", "sharegpt", "vllm"] = knob(
        "auto", "Layout of the file"
    )
    first: int = knob(0, "Requests left out at the start", low=0, high=10**9)
    count: int = knob(200, "Requests taken; 0: all", low=0, high=10**9, log=True)
    speed: float = knob(
        1.0, "Arrivals so many times as fast", low=1e-3, high=1e6, unit="×", log=True
    )
    rate: float = knob(
        0.0,
        "Arrivals where the trace has no times; 0: at once",
        low=0.0,
        high=1e6,
        unit="1/s",
        called="Arrival rate",
    )
    shrink: int = knob(1, "Lengths divided by this, for small models", low=1, high=512, log=True)
    lenient: bool = knob(False, "Leave bad lines out instead of refusing the file")

    def read(self) -> Trace:
        """The part of the file that is asked for. Raises BadInput, naming a line that cannot be
        read unless such are left out."""
        path, how = self.path(self.file), self.format
        return load(path, how, first=self.first, count=self.count, lenient=self.lenient)

    def requests(self, source: Source, seed: int) -> list[Request]:
        trace = self.read()
        random = np.random.default_rng([seed, 3])
        times = [request.arrival / self.speed for request in trace.requests]
        if not trace.timed:
            times = arrivals(random, len(times), self.rate).tolist()
        prompts, answers = self._prompts(trace, source, seed)
        return [
            source.request(prompts[i], answers[i], times[i], user=_user(traced))
            for i, traced in enumerate(trace.requests)
        ]

    @staticmethod
    def path(name: str) -> Path:
        """A file of the person's own, or a shipped trace. Raises BadInput listing those."""
        shipped = {path.name: path for path in dataset("workloads").iterdir() if path.is_file()}
        path = Path(name)
        if os.path.isfile(path):
            return path
        if name not in shipped:
            raise BadInput(
                f"trace {name!r}: no such file; give a path or one of: {', '.join(sorted(shipped))}"
            )
        return shipped[name]

    def _prompts(
        self, trace: Trace, source: Source, seed: int
    ) -> tuple[list[np.ndarray], list[int]]:
        """Prompt tokens and answer lengths, shrunk."""
        requests = trace.requests
        if trace.format == "sharegpt":
            return self._spoken(requests, source, seed)
        lengths = np.array([self._short(r.prompt) for r in requests])
        answers = [self._short(r.answer) for r in requests]
        if trace.format == "mooncake":
            return self._blocks(requests, lengths, source.vocab, seed), answers
        return split(seed, lengths, source.vocab, np.arange(len(requests))), answers

    def _blocks(
        self, requests: tuple[Traced, ...], lengths: np.ndarray, vocab: int, seed: int
    ) -> list[np.ndarray]:
        """A block's tokens depend on its id alone, so equal ids are equal tokens."""
        block = max(1, BLOCK // self.shrink)
        ids = np.array([b for r in requests for b in r.blocks], np.uint64)
        affordable(ids.size * block)
        filled = tokens(seed, ids[:, None], np.arange(block)[None, :], vocab)
        ends = np.cumsum([len(r.blocks) for r in requests])
        parts = np.split(filled, ends[:-1])
        return [part.reshape(-1)[:n] for part, n in zip(parts, lengths, strict=True)]

    def _spoken(
        self, requests: tuple[Traced, ...], source: Source, seed: int
    ) -> tuple[list[np.ndarray], list[int]]:
        """Text in tokens; without a tokenizer, as many as text of that length usually has."""
        if source.encode is not None:
            prompts = [np.array(source.encode(r.text), np.int32) for r in requests]
            answers = [self._short(len(source.encode(r.reply))) for r in requests]
            return [p[: self._short(len(p))] for p in prompts], answers
        lengths = np.array([self._short(len(r.text) // LETTERS) for r in requests])
        streams = np.array([r.conversation for r in requests])
        answers = [self._short(len(r.reply) // LETTERS) for r in requests]
        return split(seed, lengths, source.vocab, streams), answers

    def _short(self, length: int) -> int:
        return max(1, -(-length // self.shrink))


def _user(traced: Traced) -> str:
    return f"c{traced.conversation}" if traced.conversation >= 0 else ""
