"""The cache view's state: pages and their holders, the prefix tree, levels over time, decisions.

In come a run's events; out goes one frame: columns for the pages, rows for the owners, the icicle,
the series, the latest decisions as sentences and four figures. Needs nothing but `Page` events;
steps, tokens and marks make it richer.
"""

from typing import Any

import numpy as np

from engine.core.events import AnyEvent, Blob, Branch, Mark, Opened, Page, Span, Token
from widgets.canvas.fold import CanvasFold
from widgets.canvas.owner_marks import owner_mark
from widgets.theme import figure
from widgets.views.page_map.pool import ACTS, Pool
from widgets.views.page_map.prefix import PrefixTree
from widgets.views.page_map.series import series, shown

QUESTION = "Where does every key and value live, and who uses it?"
EMPTY = "No pages yet. Start a run, or open a recorded one: every page of its cache shows here."
OVER = ("finished", "aborted", "rejected", "pruned", "joined")
DECISIONS = 80  # sentences kept
SILENT = ("lookup",)  # marks too frequent for the list of decisions


class PageMap(CanvasFold):
    """Folds events into the cache view's frame."""

    question, empty = QUESTION, EMPTY
    peaks = ("pages used", "saved by sharing")
    own = ("pool", "states", "tree", "series", "length", "fresh", "masked", "parents")

    def __init__(self) -> None:
        super().__init__()
        self.facts: dict[str, Any] = {}
        self.pool, self.states, self.tree = Pool(), Pool(), PrefixTree()
        self.series = series()
        self.touched = 0.0  # the latest page event
        self.steps, self.step_stop = 0, -1.0
        self.length: dict[int, int] = {}  # owner -> positions stored, as far as events say
        self.parents: dict[str, str] = {}
        self.fresh: set[int] = set()  # owners whose latest token came from a prefill
        self.masked: set[int] = set()  # owners whose steps store all their positions anew
        self.hits, self.computed = 0, 0  # prompt tokens found, and computed
        self.decisions: tuple[tuple[float, str, str], ...] = ()
        self.path: tuple[int, ...] = ()  # pages the last lookup found
        self.lookup: dict[str, Any] = {"text": "", "owner": "", "hit": 0, "miss": 0, "last": -1}
        self.mass, self.mass_seconds = "", 0.0
        self.most_used, self.most_saved = 0, 0  # so far: pages, and references beyond the first

    def take(self, event: AnyEvent) -> None:
        match event:
            case Page() if event.kind:
                self.states.add(event, self.step)
            case Page():
                self._page(event)
            case Token() if event.accepted:
                self._token(event)
            case Span(name="step"):
                self.steps, self.step_stop = self.steps + 1, event.time
                self.series.append(event.time, *self._counts())
            case Span(name="prefill" | "unmask" | "denoise"):
                self._prefill(event)
            case Span(name="attention sample"):
                self.mass_seconds += event.time - event.start
            case Mark():
                self._mark(event)
            case Branch():
                self._branch(event)
            case Blob(name="attention_mass"):
                self.mass = event.ref
            case Opened():
                self._open(event)

    def _open(self, event: Opened) -> None:
        self.facts = event.facts
        sizes = [int(event.facts.get(k, d)) for k, d in
                 (("pages", 0), ("page_size", 1), ("host_pages", 0))]  # fmt: skip
        self.pool = Pool(*sizes)
        self.states = Pool(int(event.facts.get("state_pages", 0)))

    @property
    def step(self) -> int:
        """The step that what happens now belongs to, from 1."""
        return self.steps + (self.now > self.step_stop)

    def _page(self, event: Page) -> None:
        if self.steps == 0 and event.time > self.touched:
            self.series.append(self.touched, *self._counts())  # a log without steps: by page events
        self.touched = event.time
        self.pool.add(event, self.step)
        self.most_used = max(self.most_used, self.pool.used)
        self.most_saved = max(self.most_saved, self.pool.extra)
        if event.state == "index":
            self.tree.index(event.page, event.parent)
        elif event.state == "free":
            self.tree.remove(event.page)
        elif event.state == "hit":
            self._hit(event)
        elif event.state == "take":
            if self.lookup["text"] and not self.lookup["owner"]:  # it found nothing for this one
                self.lookup = {**self.lookup, "owner": event.owner}
        elif event.state == "share" and event.start == 0:
            above = self.pool.owners.get(self.parents.get(event.owner, ""), -1)
            self.length[self.pool.owner(event.owner)] = self.length.get(above, 0)

    def _hit(self, event: Page) -> None:
        tokens = event.tokens or self.pool.page_size
        if self.lookup["owner"] != event.owner or event.start <= self.lookup["last"]:
            unnamed = self.lookup["text"] if not self.lookup["owner"] else ""
            self._look(event.owner, unnamed)
        self.path = (*self.path, event.page)
        hit = self.lookup["hit"] + tokens
        self.lookup = {**self.lookup, "hit": hit, "last": event.start}
        self.hits += tokens
        who = self.pool.owner(event.owner)
        self.length[who] = max(self.length.get(who, 0), event.start + tokens)

    def _look(self, owner: str, text: str) -> None:
        """A new lookup; its hits, and its mark, may come in either order."""
        self.path = ()
        self.lookup = {"text": text, "owner": owner, "hit": 0, "miss": 0, "last": -1}

    def _token(self, event: Token) -> None:
        who = self.pool.owners.get(event.thread)
        if who is None or who not in self.pool.rows or who in self.masked:
            return
        if who in self.fresh:  # sampled from the prompt: its own key is stored in the next step
            self.fresh.discard(who)
            return
        # One more position: the token before this one.
        position = self.length.get(who, 0)
        self.length[who] = position + 1
        page = self.pool.page_at(who, position)
        if page is not None:
            self.pool.wrote[page] = self.pool.touched[page] = self.step

    def _prefill(self, event: Span) -> None:
        begin, _, stop = event.tag.partition(":")
        if not (begin.isdigit() and stop.isdigit()):
            return
        first, last = int(begin), int(stop)
        who = self.pool.owner(event.lane)
        if event.name == "prefill":
            self.computed += last - first
        else:
            self.masked.add(who)
        self.length[who] = max(last, self.length.get(who, 0) if first else 0)
        self.fresh.add(who)
        if self.lookup["owner"] == event.lane:
            self.lookup = {**self.lookup, "miss": max(0, last - self.lookup["hit"])}
        pages, starts = self.pool.row(who)
        inside = pages[(starts + self.pool.page_size > first) & (starts < last) & (pages >= 0)]
        self.pool.column("wrote")[inside] = self.step

    def _mark(self, event: Mark) -> None:
        if event.name == "lookup":
            if self.lookup["owner"] and not self.lookup["text"]:
                self.lookup = {**self.lookup, "text": event.text}
            else:
                self._look("", event.text)
        elif event.text and event.name not in SILENT:
            told = (event.time, event.name, event.text)
            self.decisions = (told, *self.decisions[: DECISIONS - 1])

    def _branch(self, event: Branch) -> None:
        who = self.pool.owners.get(event.thread)
        if event.parent:
            self.parents[event.thread] = event.parent
        if who is not None and event.state in OVER:
            self.pool.forget_host(who)
        if who is not None and event.state in (*OVER, "preempted") and not self._seen(who):
            self.length.pop(who, None)

    def _seen(self, who: int) -> bool:
        """Whether pages are held that its steps store anew, as those of a frame that others see."""
        return who in self.masked and bool(self.pool.rows.get(who))

    def _counts(self) -> tuple[int, int, int, int]:
        """Used, cached, free and host pages now."""
        pool = self.pool
        return pool.used, pool.cached, pool.pages - pool.used - pool.cached, len(pool.host)

    def draw(self) -> dict[str, Any]:
        """Everything about every page."""
        pool = self.pool
        rows = pool.table()
        fill = self._fill(rows)
        names, number = self._named(rows)
        state, refs = pool.column("state").copy(), pool.column("refs")
        looks = np.array([owner_mark(name) for name in names], np.uint8).reshape(-1, 2)
        return {
            "any": bool(pool.pages),
            "step": self.step,
            "page_size": pool.page_size,
            "owners": names,
            "owner_hue": looks[:, 0],
            "owner_texture": looks[:, 1],
            "acts": list(ACTS),
            "lookup": self.lookup,
            "decisions": self.decisions,
            "figures": self._figures(fill),
            "mass_share": self.mass_seconds / self.now if self.now > 0 else 0.0,
            "state": state,
            "refs": refs.clip(0, 255).astype(np.uint8),
            "owner": number[pool.column("shown")],
            "age": (self.step - pool.column("touched")).clip(0, 65535).astype(np.uint16),
            "glow": ((pool.column("wrote") == self.step) & (state == 1)).astype(np.uint8),
            "fill": fill.astype(np.uint16),
            "act": pool.column("act").copy(),
            "acted": pool.column("acted").copy(),
            **self._whys(),
            "row_owner": number[rows["row_owner"]],
            "row_offset": rows["row_offset"],
            "row_page": rows["row_page"],
            "row_start": rows["row_start"],
            "host_owner": number[pool.host_owner()],
            "path": np.array(self.path, np.int32),
            **self._states(names),
            **self.tree.blocks(refs, pool.page_size),
            **shown(self.series, self.now, self._counts()),
            **self._attention(),
        }

    def _states(self, names: list[str]) -> dict[str, np.ndarray]:
        """Pages of recurrent states: free, held or kept for a prefix, by whom and by how many."""
        states, place = self.states, {name: number for number, name in enumerate(names)}
        numbers = [place.get(name, 65535) for name in states.owners] + [65535]
        return {
            "states": states.column("state").copy(),
            "states_owner": np.array(numbers, np.uint16)[states.column("shown")],
            "states_refs": states.column("refs").clip(0, 255).astype(np.uint8),
        }

    def _fill(self, rows: dict[str, np.ndarray]) -> np.ndarray:
        """Positions filled in every page, by the longest of its holders."""
        size = self.pool.page_size
        lengths = np.array([self.length.get(int(w), 0) for w in rows["row_owner"]], np.int64)
        per_cell = np.repeat(lengths, np.diff(rows["row_offset"]))
        filled = (per_cell - rows["row_start"]).clip(0, size)
        fill = np.zeros(self.pool.pages, np.int64)
        here = rows["row_page"] >= 0
        np.maximum.at(fill, rows["row_page"][here], filled[here])
        if self.pool.indexed:
            fill[np.fromiter(self.pool.indexed, np.int64)] = size
        return fill

    def _named(self, rows: dict[str, np.ndarray]) -> tuple[list[str], np.ndarray]:
        """Owners that still show somewhere, and the map from owner numbers to places among them.

        The last entry of the map stands for nobody: -1 finds it.
        """
        pool = self.pool
        host = np.fromiter(pool.host.values(), np.int64, len(pool.host))
        shown = np.unique(np.concatenate([pool.column("shown"), rows["row_owner"], host]))
        shown = shown[shown >= 0].astype(np.int64)
        number = np.full(len(pool.owners) + 1, 65535, np.uint16)
        number[shown] = np.arange(len(shown))
        names = list(pool.owners)
        return [names[who] for who in shown], number

    def _whys(self) -> dict[str, Any]:
        """The reasons that pages carry now, and which of them each page has."""
        used, place = np.unique(self.pool.column("why"), return_inverse=True)
        texts = list(self.pool.whys)
        return {"whys": [texts[w] for w in used], "why": place.astype(np.int32)}

    def _attention(self) -> dict[str, Any]:
        """The latest sample of attention mass: pages, or layers by heads by pages."""
        array = self.blobs.get(self.mass) if self.mass else None
        return {} if array is None else {"mass": np.asarray(array, np.float32)}

    def _figures(self, fill: np.ndarray) -> list[list[str]]:
        pool = self.pool
        asked = self.hits + self.computed
        room = pool.used * pool.page_size
        held = int(fill[pool.column("state") == 1].sum())
        each = float(self.facts.get("bytes_per_page", 0))

        def saved(extra: int) -> str:
            return figure(extra * each, "B") if each else figure(extra, "pages")

        # Of this moment; what was more before is told beside it, or the end of a run says nothing.
        used = f", {self.most_used:,} at most" if self.most_used > pool.used else ""
        most = f", {saved(self.most_saved)} at most" if self.most_saved > pool.extra else ""
        return [
            [f"pages used{used}", f"{pool.used:,} of {pool.pages:,}"],
            ["hit rate", figure(self.hits / asked if asked else float("nan"), "%")],
            [f"saved by sharing{most}", saved(pool.extra)],
            ["fragmentation", figure(1 - held / room if room else float("nan"), "%")],
        ]
