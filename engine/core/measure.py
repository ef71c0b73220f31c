"""Measures: pure functions from a log to numbers. Nothing pushes metrics beside the log."""

from dataclasses import dataclass, field

import numpy as np

from engine.core.events import Branch, Level, Span, Token
from engine.core.log import Log

OVER = ("finished", "aborted", "rejected", "pruned", "joined")
# How blobs of latencies are called where buckets alone are known, of a server that is watched:
# `latency/time_to_first_token`, [2, K]: rising bounds in seconds, how many were at most each.
BUCKETS = "latency/"


@dataclass(slots=True)
class Served:
    """One request's life, in seconds since the run opened; None where it never got there."""

    thread: str
    queued: float | None = None
    started: float | None = None
    ended: float | None = None
    outcome: str = ""
    preemptions: int = 0
    prefilled: int = 0  # prompt positions computed, recomputation included
    tokens: list[float] = field(default_factory=list)  # when each accepted token came

    @property
    def time_to_first_token(self) -> float | None:
        if self.queued is None or not self.tokens:
            return None
        return self.tokens[0] - self.queued

    @property
    def time_per_output_token(self) -> float | None:
        if len(self.tokens) < 2:
            return None
        return (self.tokens[-1] - self.tokens[0]) / (len(self.tokens) - 1)

    @property
    def end_to_end(self) -> float | None:
        if self.queued is None or self.ended is None or self.outcome != "finished":
            return None
        return self.ended - self.queued


def served(log: Log) -> dict[str, Served]:
    """Every request (thread) of the log by its id, in order of appearance."""
    found: dict[str, Served] = {}

    def of(thread: str) -> Served:
        if thread not in found:
            found[thread] = Served(thread)
        return found[thread]

    for event in log:
        if isinstance(event, Token):
            if event.accepted:
                of(event.thread).tokens.append(event.time)
        elif isinstance(event, Branch):
            _change(of(event.thread), event)
        elif isinstance(event, Span) and event.name == "prefill":
            start, stop = event.tag.split(":")
            of(event.lane).prefilled += int(stop) - int(start)
    return found


def _change(request: Served, event: Branch) -> None:
    if event.state == "queued" and request.queued is None:
        request.queued = event.time
    elif event.state == "running" and request.started is None:
        request.started = event.time
    elif event.state in ("preempted", "swapped"):
        request.preemptions += 1
    elif event.state in OVER:
        request.ended, request.outcome = event.time, event.state


@dataclass(frozen=True)
class Latency:
    """Quantiles of one latency in seconds."""

    count: int
    p50: float
    p90: float
    p99: float
    mean: float


def latency(values: list[float]) -> Latency:
    """Quantiles of `values`; zeros where there are none (`count` says so)."""
    if not values:
        return Latency(0, 0.0, 0.0, 0.0, 0.0)
    p50, p90, p99 = np.quantile(values, [0.5, 0.9, 0.99])
    return Latency(len(values), float(p50), float(p90), float(p99), float(np.mean(values)))


@dataclass(frozen=True)
class Serving:
    """What a serving run came to. Rates per second; tokens are generated and accepted ones."""

    requests: int
    finished: int
    tokens: int
    prefilled: int
    makespan: float
    tokens_per_second: float
    requests_per_second: float
    preemptions: int
    time_to_first_token: Latency
    time_per_output_token: Latency
    end_to_end: Latency


KNOWN = ("arrival", "answer", "computed", "retries", "state")  # of every request
OF_TABLE = (*KNOWN, "first", "ended")


def _table(log: Log) -> dict[str, np.ndarray] | None:
    """Columns of the requests of a run that left tokens out, by name; None for any other."""
    facts = log.opened.facts if log.opened is not None else {}
    names, found = facts.get("columns"), log.blobs.get("requests")
    if not facts.get("thinned") or not isinstance(names, list) or found is None:
        return None
    if found.ndim != 2 or len(found) != len(names) or not set(OF_TABLE) <= set(map(str, names)):
        return None
    told = dict(zip(map(str, names), found, strict=True))
    numbers = found.dtype.kind == "f" and all(np.isfinite(told[name]).all() for name in KNOWN)
    return told if numbers else None


def _of_table(told: dict[str, np.ndarray], log: Log) -> Serving:
    """Of all requests. Where the events of one in so many were recorded, `preemptions` are those
    that began again elsewhere."""
    done, answer = told["state"] == 1, told["answer"]
    tokens, finished, count = int(answer[done].sum()), int(done.sum()), len(done)
    begun, ended = told["arrival"].min(initial=np.inf), np.nanmax(told["ended"], initial=0.0)
    makespan = max(float(ended - begun), 1e-12) if count else 1e-12
    yielded = sum(branch.state in ("preempted", "swapped") for branch in log.of(Branch))
    more = done & (answer > 1)
    each = (told["ended"] - told["first"])[more] / (answer[more] - 1)
    return Serving(
        requests=count,
        finished=finished,
        tokens=tokens,
        prefilled=int(told["computed"].sum()),
        makespan=makespan,
        tokens_per_second=tokens / makespan,
        requests_per_second=finished / makespan,
        preemptions=max(yielded, int(told["retries"].sum())),
        time_to_first_token=latency((told["first"] - told["arrival"])[done].tolist()),
        time_per_output_token=latency(each.tolist()),
        end_to_end=latency((told["ended"] - told["arrival"])[done].tolist()),
    )


LATENCIES = ("time_to_first_token", "time_per_output_token", "end_to_end")


@dataclass(frozen=True)
class Requests:
    """Each request's own figures, a place for each: seconds, NaN where it never got there.

    `arrivals` from the first on. `tokens` and `ended`: when each token came and each request was
    finished, in order; no tokens of a run that left them out.
    """

    names: tuple[str, ...]
    arrivals: np.ndarray
    latencies: dict[str, np.ndarray]
    begun: float
    tokens: np.ndarray
    ended: np.ndarray


def by_request(log: Log) -> Requests:
    """What `serving` sums up, request by request."""
    told = _table(log)
    if told is not None:
        done, answer = told["state"] == 1, told["answer"]
        with np.errstate(all="ignore"):
            found = (
                np.where(done, told["first"] - told["arrival"], np.nan),
                np.where(
                    done & (answer > 1), (told["ended"] - told["first"]) / (answer - 1), np.nan
                ),
                np.where(done, told["ended"] - told["arrival"], np.nan),
            )
        begun, ended = float(told["arrival"].min(initial=np.inf)), np.sort(told["ended"][done])
        return Requests(
            tuple(f"r{place}" for place in range(len(done))),
            told["arrival"] - begun,
            dict(zip(LATENCIES, found, strict=True)),
            begun,
            np.array([]),
            ended,
        )
    each = served(log).values()
    queued = np.array([r.queued for r in each], np.float64)
    begun = float(np.nanmin(queued, initial=np.inf)) if np.isfinite(queued).any() else 0.0
    return Requests(
        tuple(r.thread for r in each),
        queued - begun,
        {name: np.array([getattr(r, name) for r in each], np.float64) for name in LATENCIES},
        begun,
        np.sort([time for r in each for time in r.tokens]),
        np.sort([r.ended or 0.0 for r in each if r.outcome == "finished"]),
    )


def serving(log: Log) -> Serving:
    """The measures of a serving run, from its log alone: from its table of requests where tokens
    were not recorded."""
    table = _table(log)
    if table is not None:
        return _of_table(table, log)
    requests = list(served(log).values())
    tokens = sum(len(r.tokens) for r in requests)
    begun = min((r.queued for r in requests if r.queued is not None), default=0.0)
    ended = max((r.ended for r in requests if r.ended is not None), default=log.duration)
    makespan = max(ended - begun, 1e-12)
    finished = sum(r.outcome == "finished" for r in requests)
    return Serving(
        requests=len(requests),
        finished=finished,
        tokens=tokens,
        prefilled=sum(r.prefilled for r in requests),
        makespan=makespan,
        tokens_per_second=tokens / makespan,
        requests_per_second=finished / makespan,
        preemptions=sum(r.preemptions for r in requests),
        time_to_first_token=latency(
            [t for r in requests if (t := r.time_to_first_token) is not None]
        ),
        time_per_output_token=latency(
            [t for r in requests if (t := r.time_per_output_token) is not None]
        ),
        end_to_end=latency([t for r in requests if (t := r.end_to_end) is not None]),
    )


def busy(log: Log, lane: str) -> float:
    """Seconds in which `lane` had a span open."""
    spans = sorted((s.start, s.stop) for s in log.of(Span) if s.lane == lane)
    total, until = 0.0, 0.0
    for start, stop in spans:
        total += max(0.0, stop - max(start, until))
        until = max(until, stop)
    return total


def fullest(log: Log, name: str) -> float | None:
    """When levels of that name were first at their highest, all lanes together, in seconds; None
    where there is none."""
    held: dict[str, float] = {}
    total = most = 0.0
    when: float | None = None
    for level in log.of(Level):
        if level.name == name:
            total += level.value - held.get(level.lane, 0.0)
            held[level.lane] = level.value
            if when is None or total > most:
                when, most = level.time, total
    return when


def peak(log: Log, name: str) -> float:
    """The highest value a level of that name took; 0 where there is none."""
    return max((level.value for level in log.of(Level) if level.name == name), default=0.0)
