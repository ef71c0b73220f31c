"""Groups of requests that begin alike: one system prompt or document, many questions about it."""

from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.inference.requests.request import Request
from engine.inference.workloads.synthetic import Lengths, arrivals, held, split
from engine.inference.workloads.workload import Source, Workload


class SharedPrefix(Workload):
    """`groups` prefixes, each asked about `per_group` times (with `skew` in the mean), always with
    a suffix of its own."""

    kind: Literal["shared_prefix"] = "shared_prefix"
    groups: int = knob(8, "Prefixes", low=1, high=100_000, log=True)
    per_group: int = knob(8, "Requests of each prefix", low=1, high=100_000, log=True)
    prefix: Lengths = knob(Lengths(median=512), "Prefix lengths")
    suffix: Lengths = knob(Lengths(median=32), "Lengths of what follows it")
    output: Lengths = knob(Lengths(median=32), "Answer lengths")
    rate: float = knob(
        0.0, "Arrivals; 0 brings all at once", low=0.0, high=1e6, unit="1/s", called="Arrival rate"
    )
    skew: float = knob(
        0.0, "Zipf's exponent of how often each prefix is asked about; 0: all alike", low=0.0,
        high=4.0, called="Prefix skew (Zipf)")  # fmt: skip
    mixed: bool = knob(True, "Groups interleaved at random, else one after another")

    def requests(self, source: Source, seed: int) -> list[Request]:
        random = np.random.default_rng([seed, 2])
        count = self.groups * self.per_group
        group = np.repeat(np.arange(self.groups), self.per_group)
        if self.skew:
            shares = np.arange(1.0, self.groups + 1) ** -self.skew
            group = np.sort(random.choice(self.groups, count, p=shares / shares.sum()))
        if self.mixed:
            random.shuffle(group)
        times = arrivals(random, count, self.rate)
        streams = np.arange(self.groups)
        prefixes = split(seed, self.prefix.draw(random, self.groups), source.vocab, streams)
        own = self.groups + np.arange(count)
        suffixes = split(seed, self.suffix.draw(random, count), source.vocab, own)
        answers = self.output.draw(random, count)
        return held(
            source.request(np.concatenate([prefixes[group[i]], suffixes[i]]), answers[i], times[i])
            for i in range(count)
        )
