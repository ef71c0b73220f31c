"""Fold of work under roofs, what bounds it and how close it comes: spans under the roofs of the
header.

In come a run's spans with flops; out goes one frame of judged marks and roofs. Spans whose tag says
`of=` are parts of others: time is never counted twice, parts are shown where there are any.
"""

import math
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from engine.core import spans as bulk
from engine.core.events import AnyEvent, Blob, Closed, Opened, Span
from engine.core.events import Mark as Moment
from widgets.fold import Fold, nothing
from widgets.theme import HUES as OWN_HUES
from widgets.theme import figure, place
from widgets.views.roofline.judge import ABOVE, MAIN, Roof, Roofs, Verdict, by_device, sentence
from widgets.views.roofline.marks import MOST, Key, Mark, key_of, read, rest

QUESTION = "What bounds this work, and how close is it?"
EMPTY = "No counted work yet. Start a run, or open a recorded one: operations become points."
BARE = (("this machine is not measured: see the Roofline page", "no roofs"),)
BEYOND = "data from a nearer cache, or roofs measured on a busy machine"
TELLING = ("counters", "caution", "left out")  # marks that say what is missing
LINE = 64  # bytes of a cache line
RECENT = 96  # latest spans shown as small points
SHOWN = 240  # marks sent to the browser: those with the most time
TAGS = 4096  # tags remembered, so that each is read once
PHASES = {"prefill": 1, "decode": 2, "training": 3}
HUES = {"prefill": 0, "decode": 1, "training": 2}


class RooflineFold(Fold):
    """Sums spans into marks; judges them when a frame is asked for."""

    def __init__(self) -> None:
        self.roofs: list[Roof] = []
        self.clock, self.run, self.dtype = "wall", "", ""
        self.opened = self.closed = False
        self.facts: dict[str, Any] = {}  # of the header
        self.marks: dict[Key, Mark] = {}
        self.hues: dict[str, int] = {}  # by lane, of marks without a phase
        self.told: dict[str, str] = {}  # what is missing, by lane
        self.recent: deque[tuple[Key, float, float]] = deque(maxlen=RECENT)
        self.tags: dict[tuple[str, str, str], tuple[Key, dict[str, str]]] = {}

    def add(self, event: AnyEvent) -> None:
        if type(event) is Span:
            if event.flops > 0:
                self._span(event)
        elif type(event) is Blob and event.name == bulk.NAME:
            self._many(bulk.Spans.told(event, self.blobs, self.facts))
        elif type(event) is Moment and event.name in TELLING:
            self.told[event.lane] = event.text
        elif type(event) is Opened:
            self.clock, self.facts, self.opened = event.clock, event.facts, True
            self.roofs = _sound(event.facts.get("roofs", ()))
            if isinstance(doubt := event.facts.get("doubt"), str) and doubt:
                self.told["machine"] = doubt
            self.dtype = str(event.config.get("dtype", ""))
            self.run = f"{event.study} {event.seed} {event.config}"
        elif type(event) is Closed:
            self.closed = True

    def _span(self, span: Span) -> None:
        known = self.tags.get((span.lane, span.name, span.tag))
        if known is None:
            told = read(span.tag)
            known = key_of(span, told, self.dtype), told
            if len(self.tags) < TAGS:
                self.tags[span.lane, span.name, span.tag] = known
        key, told = known
        mark = self.marks.get(key)
        if mark is None:
            if len(self.marks) >= MOST:
                key = Key(span.lane, "other shapes")
            mark = self.marks.setdefault(key, Mark(key, len(self.marks), said=rest(told)))
            if key.phase not in HUES:
                self._choose_hue(key.lane)
        mark.add(span, told)
        seconds = max(span.time - span.start, 1e-12)
        self.recent.append((key, span.flops / max(span.bytes, 1.0), span.flops / seconds))

    def _many(self, spans: bulk.Spans) -> None:
        """Spans that came as columns: those that did counted work, as if one by one."""
        for span in spans.events(np.flatnonzero(spans.flops > 0)):
            self._span(span)

    def _choose_hue(self, lane: str) -> None:
        """The lane's own hue, or the next that no other lane has while there are any."""
        if lane not in self.hues:
            wanted = [(place(lane) + turn) % len(OWN_HUES) for turn in range(len(OWN_HUES))]
            free = [hue for hue in wanted if hue not in self.hues.values()]
            self.hues[lane] = (free or wanted)[0]

    def copy(self) -> Self:
        other = type(self)()
        other.__dict__.update(self.__dict__)
        other.told = dict(self.told)
        other.hues = dict(self.hues)
        other.marks = {key: mark.copy() for key, mark in self.marks.items()}
        other.recent, other.tags = self.recent.copy(), dict(self.tags)
        return other

    def frame(self) -> dict[str, Any]:
        devices = by_device(self.roofs)
        own = next(iter(devices), "")
        judged = [self._judged(mark, devices, own) for mark in self.marks.values()]
        _tell_apart(judged)
        groups = {bool(row["part"]) for row in judged if not row["ghost"]}
        shown = [row for row in judged if row["part"] == (True in groups) or row["ghost"]]
        whole = [row for row in judged if not row["part"] or row["ghost"]]
        kept = sorted(judged, key=lambda row: -row["seconds"])[:SHOWN]
        kept.sort(key=lambda row: row["place"])
        dtypes = {mark.key.dtype for mark in self.marks.values()}
        doubted = self.told.get("machine", "") != ""
        recent = [(x, y, k) for k, x, y in self.recent if bool(k.of) == (True in groups)]
        return {
            "question": QUESTION,
            "empty": "" if judged else nothing(EMPTY, self.opened, self.closed),
            "modelled": self.clock == "virtual",
            "run": self.run,
            "roofs": [_shown(roof, own, dtypes) for roof in self.roofs if _drawn(roof)],
            "marks": kept,
            "of": len(judged),
            "note": self._note(shown),
            "both": len(groups) == 2,
            "figures": figures(shown, doubted) if self.roofs or not judged else BARE,
            "figures_whole": figures(whole, doubted),
            "lead": lead(shown),
            "lead_whole": lead(whole),
            "recent_x": np.array([x for x, _, _ in recent]),
            "recent_y": np.array([y for _, y, _ in recent]),
        }

    def _note(self, rows: list[dict[str, Any]]) -> str:
        """What to know before trusting the picture."""
        lanes = sorted(self.told, key=lambda lane: (lane != "machine", lane))  # doubts first
        said = [self.told[lane] for lane in lanes][:2]
        if isinstance(gpu := self.facts.get("gpu"), str):
            said.insert(0, f"measured on {gpu}")
        above = [row for row in rows if (row["share"] or 0.0) > ABOVE]
        return " · ".join([*said, f"{len(above)} above their roof: {BEYOND}"] if above else said)

    def _judged(self, mark: Mark, devices: dict[str, Roofs], own: str) -> dict[str, Any]:
        key = mark.key
        roofs = devices.get(key.device or own) or Roofs(())
        verdict = roofs.judge(mark)
        share = verdict.share(mark)
        modelled = key.grade == "modelled" or self.clock == "virtual"
        return {
            "place": mark.place,
            "title": _title(key),
            "label": _title(key),
            "detail": _detail(key),
            "lane": key.lane,
            "shape": key.shape.replace("_", " "),
            "thread": f"{key.lane} {key.phase}",
            "phase": PHASES.get(key.phase, 0),
            "hue": HUES[key.phase] if key.phase in HUES else self.hues[key.lane],
            "x": mark.intensity,
            "y": mark.rate,
            "seconds": mark.seconds,
            "each": mark.seconds / mark.count,
            "least": verdict.least,
            "lost": verdict.lost(mark),
            "share": share if share == share else None,
            "bound": verdict.kind,
            "roof": verdict.roof,
            "at": verdict.at,
            "limit": mark.flops / verdict.least if verdict.least else 0.0,
            "levels": [[name, mark.flops / size] for name, size in mark.levels.items() if size],
            "part": bool(key.of),
            "ghost": bool(key.device) and key.device != own,
            "modelled": modelled,
            "words": words(mark, verdict, modelled),
        }


def words(mark: Mark, verdict: Verdict, modelled: bool) -> list[str]:
    """What the pointer is told of a mark, a line each, the first its name."""
    key, n = mark.key, mark.count
    each = f" each, {n:,} times" if n > 1 else ""
    took = figure(mark.seconds / n, "s")
    lines = [_title(key), sentence(verdict, mark)]
    facts = [key.shape.replace("_", " "), key.dtype, key.variant, key.phase, key.counts, mark.said]
    lines.append(" · ".join(fact for fact in facts if fact))
    lines.append(f"{figure(mark.flops / n, 'FLOP')}, {figure(mark.bytes / n, 'B')}{each}")
    said = "modelled " if modelled else ""
    best = f", at best {figure(mark.best, 's')}" if n > 1 and not modelled else ""
    lines.append(f"{said}{took}{best}; the roofs allow {figure(verdict.least / n, 's')}")
    lines.append(f"{figure(mark.rate, 'FLOP/s')} at {figure(mark.intensity)} FLOP/B")
    for level, size in mark.levels.items():
        if size:
            lines.append(f"{level}: {figure(size / n, 'B')}, {figure(mark.flops / size)} FLOP/B")
    if mark.misses:
        times = figure(mark.misses * LINE / max(mark.bytes, 1.0))
        lines.append(
            f"counted by hardware: {figure(mark.misses / n)} cache misses, {times} × its bytes"
        )
    if key.resident:
        lines.append(f"its data stays in {key.resident}")
    if key.device and modelled:
        lines.append(f"on {key.device}")
    return [line for line in lines if line]


def figures(rows: Sequence[dict[str, Any]], doubted: bool = False) -> list[list[str]]:
    """Achieved over limit, and time lost, of the run's own device: what `lead` does not say.

    `doubted`: the roofs were measured beside other work. More than a limit is none achieved.
    """
    rows = [row for row in rows if not row["ghost"] and row["least"]]
    total = sum(row["seconds"] for row in rows)
    if not total:
        return []
    reached = sum(row["least"] for row in rows) / total
    lost = ["lost in all", figure(sum(row["lost"] for row in rows), "s")]
    return [_reached(reached, doubted), lost]


def lead(rows: Sequence[dict[str, Any]]) -> str:
    """What bounds the run's own device and what loses most there, as a sentence; "" without
    roofs."""
    rows = [row for row in rows if not row["ghost"] and row["least"]]
    total = sum(row["seconds"] for row in rows)
    if not total:
        return ""
    memory = sum(row["seconds"] for row in rows if row["bound"] == "bandwidth") / total
    share = {0.0: "None", 1.0: "All"}.get(memory, figure(memory, "%"))
    worst = max(rows, key=lambda row: row["lost"])
    most = "" if len(rows) == 1 else " most"
    loses = f"{worst['title']} loses{most}: {figure(worst['lost'], 's')}"
    limit = worst["share"] or math.nan
    at = f", at {figure(limit, '%')} of its limit" if limit <= 1 else ""
    return f"{share} of the time is memory-bound; {loses}{at}."


def _reached(share: float, doubted: bool) -> list[str]:
    if share > 1:
        return ["achieved / limit: its roofs are too low for this work", "not known"]
    said = "achieved / limit, of roofs in doubt" if doubted else "achieved / limit"
    return [said, figure(share, "%")]


def _title(key: Key) -> str:
    name = "" if key.name in (key.lane, "step") else f" {key.name}"
    if key.name == "step":
        return f"step, {key.counts}" if key.counts else "step"
    return f"{key.lane}{name}"


def _detail(key: Key) -> str:
    """What tells a mark from others of its title."""
    source = f"from {key.resident}" if key.resident else ""
    return " ".join(part for part in (key.shape.replace("_", " "), key.dtype, source) if part)


def _tell_apart(rows: list[dict[str, Any]]) -> None:
    """Add the shape to the label of marks that share their title."""
    count = Counter((row["title"], row["part"], row["ghost"]) for row in rows)
    for row in rows:
        if row["shape"] and count[row["title"], row["part"], row["ghost"]] > 1:
            row["label"] = f"{row['lane']} {row['shape']}"
    same = Counter((row["label"], row["part"], row["ghost"]) for row in rows)
    for row in rows:  # of two kernels, each at several shapes
        if row["shape"] and same[row["label"], row["part"], row["ghost"]] > 1:
            row["label"] = f"{row['title']} {row['shape']}"


def _sound(rows: Any) -> list[Roof]:
    """The roofs of a header that can be read: a log may come from anywhere."""
    found = []
    for row in rows if isinstance(rows, list | tuple) else ():
        value = row.get("value") if isinstance(row, dict) else None
        if isinstance(value, int | float) and 0 < value < float("inf"):
            texts = ("device", "name", "kind", "grade", "level", "dtype")
            found.append({**{k: str(row.get(k, "")) for k in texts}, "value": float(value)})
    return found


def _drawn(roof: Roof) -> bool:
    """Exponentials and launches bind, but are no lines of this plot."""
    return roof["kind"] in ("bandwidth", "compute")


def _shown(roof: Roof, own: str, dtypes: set[str]) -> dict[str, Any]:
    """A roof with whether it is the run's own device, and whether to draw it at first sight."""
    mine = roof["device"] == own
    used = roof["dtype"] in dtypes or not dtypes - {""}
    near = mine or roof["level"] in MAIN
    shown = near if roof["kind"] == "bandwidth" else used or roof["grade"] == "measured"
    return {**roof, "own": mine, "shown": shown}
