"""Fold of threads, who thinks what and when: lanes, their tokens, what each forked from, read, and
sees.

In come a run's events; out goes one frame of columns with the whole history so far. A thread's
place counts tokens along the chain it had to wait for: a fork starts at its parent's place, and who
reads another thread goes on from the further of the two.
"""

import re
from math import isfinite
from typing import Any

import numpy as np

from engine.core.events import (
    AnyEvent,
    Blob,
    Branch,
    Closed,
    Level,
    Mark,
    Opened,
    Page,
    Span,
    Token,
    Told,
)
from widgets.canvas.columns import Columns
from widgets.canvas.fold import LaneFold
from widgets.theme import figure
from widgets.views.threads.family import FORK, JOIN, critical, preorder
from widgets.views.threads.running import threads_running
from widgets.views.threads.sight import SEES, Sight

QUESTION = "Who thinks what, when, and who reads whom?"
EMPTY = (
    "No threads yet. Start a run whose threads fork or read each other, or open a recorded one:"
    " each thread gets a lane here."
)
ENDS = ("finished", "joined", "pruned", "aborted", "rejected")
DEAD = ("pruned", "aborted", "rejected")
WAITS = ("queued", "waiting", "blocked", "paused", "preempted", "swapped")
LONGEST, LONGEST_ANSWER = 200, 24  # bytes of one token's text, characters of the answer's figure
COUNTED = ("tokens_total", "tokens_critical", "tokens_saved")
TOLD = ("answer", "verdict", "refuse")  # marks of lanes that are no threads
WORD = re.compile(r"[^\s,;]+")


class Threads(LaneFold):
    """Folds events into lanes, edges between them, and what each sees."""

    question, empty = QUESTION, EMPTY
    own = (
        *LaneFold.own, "above", "place", "first", "last", "ends", "open", "reasons", "read",
        "totals", "tokens", "text", "jumps", "waits", "marks", "texts", "steps", "moments", "sight",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.page_size = 0
        self.commands: list[str] = []  # what a person may tell the driver, while it runs
        self.above: list[int] = []  # of each lane: its parent's, -1
        self.place: list[int] = []  # tokens since the start along what it had to wait for
        self.first: list[float] = []  # when it said its first token, NaN before
        self.last: list[float] = []  # when it said its latest, or was born
        self.ends: dict[int, tuple[float, int, str]] = {}  # when, how, why
        self.open: dict[int, float] = {}  # lanes that wait, and since when
        self.reasons: dict[int, str] = {}  # a judge's words about a lane
        self.read: dict[tuple[int, int], int] = {}  # reader and source -> the source's place
        self.totals: dict[str, float] = {}  # what the engine itself counts
        self.refused, self.shared = 0, 0
        self.answer: tuple[str, int, float] | None = None  # text, lane or -1, time
        self.verdict = ""
        self.refusal: list[Any] = []  # when, and why, what a person said last was not done
        self.tokens = Columns(
            lane="i4", time="f8", place="i4", logprob="f4", accepted="u1", stop="i4"
        )
        self.text = Columns(byte="u1")
        self.jumps = Columns(to="i4", source="i4", kind="u1", time="f8", before="i4", place="i4")
        self.waits = Columns(lane="i4", start="f8", stop="f8")
        self.marks = Columns(lane="i4", time="f8", place="i4")
        self.texts: list[tuple[str, str]] = []  # of each mark: name and text
        self.steps = Columns(time="f8")
        self.moments = Columns(time="f8")  # different times of tokens: steps where none are told
        self.moment = -1.0  # the latest of them
        self.sight = Sight()

    def lane(self, name: str) -> int:
        lane = super().lane(name)
        if lane == len(self.place):
            self.above.append(-1)
            self.place.append(0)
            self.first.append(float("nan"))
            self.last.append(self.now)
        return lane

    def take(self, event: AnyEvent) -> None:
        match event:
            case Token():
                self._token(event)
            case Branch():
                self._branch(event)
            case Told():
                self.refusal = []
            case Mark() if event.lane in self.lanes or event.name in TOLD:
                self._mark(event)
            case Level() if event.name.startswith(SEES):
                lane = self.lane(event.lane)
                self.sight.tell(lane, event.name[len(SEES) :], event.time, event.value)
            case Level(lane="engine" | "threads") if event.name in COUNTED and isfinite(
                event.value
            ):
                self.totals[event.name] = event.value
            case Page() if event.owner in self.lanes:
                self.sight.page(event, self.lanes[event.owner])
                if event.state in ("share", "hit"):
                    self.shared += event.tokens or self.page_size
            case Blob(name="attention_views"):
                self.sight.sampled = event.ref, 0
            case Span(name="step"):
                self.steps.append(event.time)
            case Opened():
                size, known = (event.facts.get(k) for k in ("page_size", "commands"))
                self.page_size = size if isinstance(size, int) else 0
                self.commands = [str(name) for name in known] if isinstance(known, list) else []
            case Closed():
                self.commands = []

    def _token(self, event: Token) -> None:
        lane = self.lane(event.thread)
        self.sight.said(lane, event.time, self.blobs)
        raw = event.text.encode("utf-8", "replace")
        if len(raw) > LONGEST:
            raw = raw[:LONGEST].decode("utf-8", "ignore").encode()
        self.text.extend(np.frombuffer(raw, np.uint8))
        likely = max(event.logprob, -100.0)
        self.tokens.append(
            lane, event.time, self.place[lane], likely, event.accepted, len(self.text)
        )
        if event.time > self.moment:
            self.moment = event.time
            self.moments.append(event.time)
        if self.first[lane] != self.first[lane]:
            self.first[lane] = event.time
        self.last[lane] = event.time
        if event.accepted:
            self.place[lane] += 1
        else:
            self.refused += 1

    def _branch(self, event: Branch) -> None:
        lane = self.lane(event.thread)
        if event.parent and event.parent != event.thread and self.above[lane] < 0:
            parent = self.above[lane] = self.lane(event.parent)
            if self.first[lane] != self.first[lane]:  # it has said nothing of its own yet
                self.place[lane] = self.place[parent]
                at = self.place[lane]
                self.jumps.append(lane, parent, FORK, event.time, at, at)
        since = self.open.pop(lane, None)
        if since is not None:
            self.waits.append(lane, since, event.time)
        if event.state in ENDS:
            self.ends[lane] = event.time, ENDS.index(event.state), event.why
            if event.state == "joined" and self.above[lane] >= 0:
                self._join(self.above[lane], lane, event.time)
        else:
            self.ends.pop(lane, None)
            if event.state in WAITS:
                self.open[lane] = event.time

    def _join(self, reader: int, source: int, time: float) -> None:
        """`reader` goes on with what `source` has said so far; told twice, it counts once."""
        said = self.place[source]
        if reader == source or self.read.get((reader, source), -1) == said:
            return
        self.read[reader, source] = said
        before = self.place[reader]
        self.place[reader] = max(before, said)
        self.jumps.append(reader, source, JOIN, time, before, self.place[reader])

    def _mark(self, event: Mark) -> None:
        lane = self.lanes.get(event.lane, -1)
        if event.name == "answer":
            self.answer = event.text, lane, event.time
        elif event.name == "verdict":
            self.verdict = event.text
        elif event.name == "refuse":
            self.refusal = [event.time, event.text]
        if lane < 0:
            return
        if event.name == "join":
            for source in self._named(event.text):
                self._join(lane, source, event.time)
        elif event.name == "prune":
            self.reasons[lane] = event.text
        self.marks.append(lane, event.time, self.place[lane])
        self.texts.append((event.name, event.text))

    def _named(self, text: str) -> list[int]:
        """The lanes whose names stand in `text`."""
        if text in self.lanes:
            return [self.lanes[text]]
        words = [word if word in self.lanes else word.strip(".:()") for word in WORD.findall(text)]
        return [self.lanes[word] for word in dict.fromkeys(words) if word in self.lanes]

    def draw(self) -> dict[str, Any]:
        """Everything so far, lanes in the order they stand in."""
        count = len(self.lanes)
        order, depth = preorder(self.above)
        at = np.array(order, np.int64)
        row = np.empty(count, np.int32)
        row[at] = np.arange(count, dtype=np.int32)
        names = list(self.lanes)
        ends = [self.ends.get(lane, (np.nan, 0, "")) for lane in order]
        path = self._path()
        jumps = {k: self.jumps[k] for k in self.jumps.types}
        places = np.array(self.place, np.int32)
        above = np.array(self.above, np.int32)
        born_place = np.zeros(count, np.int32)
        forks = jumps["kind"] == FORK
        born_place[jumps["to"][forks]] = jumps["place"][forks]
        return {
            **self.named(),
            "names": [names[lane] for lane in order],
            "hue": self.looks["hue"][at],
            "texture": self.looks["texture"][at],
            "born": self.looks["born"][at],
            "above": np.where(above[at] >= 0, row[above[at]] if count else 0, -1).astype(np.int32),
            "depth": np.array(depth, np.uint8)[at],
            "ended": np.array([when for when, _, _ in ends], np.float64),
            "outcome": np.array([how for _, how, _ in ends], np.uint8),
            "whys": [end[2] or self.reasons.get(x, "") for x, end in zip(order, ends, strict=True)],
            "outcomes": ENDS,
            "born_place": born_place[at],
            "last_place": places[at],
            "first": np.array(self.first, np.float64)[at],
            "last": np.array(self.last, np.float64)[at],
            "most": int(places.max()) if count else 0,
            "token_lane": row[self.tokens["lane"]],
            **{f"token_{k}": self.tokens[k] for k in self.tokens.types if k != "lane"},
            "text": self.text["byte"],
            "edge_to": row[jumps["to"]],
            "edge_source": row[jumps["source"]],
            **{f"edge_{k}": jumps[k] for k in ("kind", "time", "before", "place")},
            "path_lane": row[path["lane"]],
            **{f"path_{k}": v for k, v in path.items() if k != "lane"},
            **self._waits(row),
            "mark_lane": row[self.marks["lane"]],
            **{f"mark_{k}": self.marks[k] for k in ("time", "place")},
            "mark_texts": list(self.texts),
            "step_time": (self.steps if len(self.steps) else self.moments)["time"],
            **self.sight.frame(names, row),
            "commands": self.commands,
            "refusal": self.refusal,
            **self._figures(path),
        }

    def _path(self) -> Any:
        """The critical path: to the answer, else to the thread furthest on that was not pruned."""
        columns = {k: self.jumps[k] for k in self.jumps.types}
        if not self.lanes:
            return {k: v[:0] for k, v in critical(columns, 0, 0.0, 0, [0.0]).items()}
        if self.answer is not None and self.answer[1] >= 0:
            _, lane, time = self.answer
            mine = (self.marks["lane"] == lane) & (self.marks["time"] == time)
            place = int(self.marks["place"][mine][-1])
        else:
            dead = {lane for lane, (_, how, _) in self.ends.items() if ENDS[how] in DEAD}
            alive = [lane for lane in range(len(self.place)) if lane not in dead]
            lane = max(alive or range(len(self.place)), key=lambda lane: self.place[lane])
            time, place = self.last[lane], self.place[lane]
        return critical(columns, lane, time, place, self.looks["born"].tolist())

    def _waits(self, row: np.ndarray) -> dict[str, np.ndarray]:
        """Stretches of waiting, those not over until now."""
        lanes = np.append(self.waits["lane"], np.array(list(self.open), np.int32))
        return {
            "wait_lane": row[lanes],
            "wait_start": np.append(self.waits["start"], list(self.open.values())),
            "wait_stop": np.append(self.waits["stop"], np.full(len(self.open), self.now)),
        }

    def _figures(self, path: Any) -> dict[str, Any]:
        forks = self.jumps["kind"] == FORK
        shared = self.shared or int(self.jumps["place"][forks].sum())
        counts = (len(self.tokens) - self.refused, int(path["last"].max(initial=0)), shared)
        labels = ("tokens", "on the critical path", "tokens saved by sharing")
        figures = [
            [label, f"{round(self.totals.get(name, count)):,}"]
            for label, name, count in zip(labels, COUNTED, counts, strict=True)
        ]
        if self.answer is not None:
            said, verdict = self.answer[0], self.verdict.partition(":")[0][:12]
            room = LONGEST_ANSWER - len(verdict)
            cut = said[: room - 1] + "…" if len(said) > room else said
            figures.append(["answer", " · ".join(text for text in (cut, verdict) if text)])
        elif len(self.lanes):
            alive = len(self.lanes) - len(self.ends)
            figures.append(["threads alive", f"{figure(alive)} of {len(self.lanes):,}"])
        return {"figures": figures, **threads_running(self, figures)}
