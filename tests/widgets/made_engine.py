"""A hand-driven engine over a page pool that emits what the event contract says.

The pool is deliberately plain (lists and dicts, a new request's pages found by comparing token
tuples), so that it can stand as the truth for folds.
"""

import random
from dataclasses import dataclass, field

import numpy as np

from engine.core.events import Blob, Branch, Level, Mark, Page, Span, Token
from engine.core.log import Log

WORDS = (
    " the", " cache", " holds", " keys", " and", " values", " for", " every", " token", ",", " so",
    " a", " page", " that", " two", " requests", " share", " is", " stored", " once", ".", "\n",
    " def", " step", "(", "self", ")", ":", " return", " None", " héllo", " 分页", " if", " len",
)  # fmt: skip


@dataclass
class Sequence:
    name: str
    prompt: list[int]
    want: int
    parent: str = ""
    tokens: list[int] = field(default_factory=list)
    computed: int = 0  # positions whose key and value are stored
    pages: list[int] = field(default_factory=list)  # device pages in order
    host: list[int] = field(default_factory=list)
    said: int = 0
    state: str = "new"


class MadeEngine:
    """Requests through one pool. `pressure` > 1 makes it evict, preempt and swap."""

    def __init__(self, seed: int, pages: int, page_size: int, host_pages: int, clock: str) -> None:
        self.random = random.Random(seed)
        self.log, self.clock = Log(), clock
        self.now, self.steps = 0.0, 0
        self.page_size = page_size
        self.free = list(range(pages))
        self.host_free = list(range(host_pages))
        self.holders: dict[int, list[str]] = {}
        self.node: dict[int, tuple[int, ...]] = {}  # page -> all tokens up to its end
        self.found: dict[tuple[int, ...], int] = {}
        self.idle: dict[int, int] = {}  # cached page -> step it was left
        self.live: list[Sequence] = []
        self.waiting: list[Sequence] = []
        self.pages = pages

    def emit(self, kind, *args, **fields) -> None:
        self.log.emit(kind(self.now, *args, **fields))

    # --- pages -------------------------------------------------------------------------------
    def take(self, owner: str, start: int) -> int | None:
        if not self.free and not self.evict():
            return None
        page = self.free.pop(self.random.randrange(len(self.free)) if self.steps > 40 else 0)
        self.holders[page] = [owner]
        self.emit(Page, page, owner, "take", start=start)
        return page

    def evict(self) -> bool:
        leaves = [p for p in self.idle if not any(self.parent(q) == p for q in self.node if q != p)]
        if not leaves:
            return False
        page = min(leaves, key=lambda p: (self.idle[p], -len(self.node[p])))
        idle = self.steps - self.idle.pop(page)
        del self.found[self.node.pop(page)]
        why = f"least recently used, {idle} step{'s' * (idle != 1)} idle"
        self.emit(Mark, "cache", "evict", f"evicted page {page}: {why}")
        self.emit(Page, page, "", "free", why=why)
        self.free.append(page)
        return True

    def parent(self, page: int) -> int:
        key = self.node[page][: -self.page_size]
        return self.found.get(key, -1) if key else -1

    def leave(self, page: int, owner: str, why: str) -> None:
        self.holders[page].remove(owner)
        self.emit(Page, page, owner, "drop", why=why)
        if not self.holders[page]:
            del self.holders[page]
            if page in self.node:
                self.idle[page] = self.steps
            else:
                self.emit(Page, page, "", "free", why=why)
                self.free.append(page)

    def index(self, seq: Sequence) -> None:
        size = self.page_size
        for place in range(seq.computed // size):
            key = tuple((seq.prompt + seq.tokens)[: (place + 1) * size])
            page = seq.pages[place]
            if page in self.node or key in self.found or len(self.holders[page]) > 1:
                continue
            above = self.found.get(key[:-size], -1) if place else -1
            if place and above < 0:
                break
            self.node[page], self.found[key] = key, page
            self.emit(Page, page, seq.name, "index", start=place * size, tokens=size, parent=above)

    # --- requests ----------------------------------------------------------------------------
    def queue(self, seq: Sequence) -> None:
        seq.state = "queued"
        self.waiting.append(seq)
        self.emit(Branch, seq.name, state="queued")

    def admit(self, seq: Sequence) -> bool:
        size, everything = self.page_size, seq.prompt + seq.tokens
        hits = []
        for place in range((len(everything) - 1) // size):
            page = self.found.get(tuple(everything[: (place + 1) * size]))
            if page is None:
                break
            hits.append(page)
        need = -(-len(everything) // size) - len(hits)
        spare = len(self.free) + sum(1 for p in self.idle if p not in hits)
        if need + 1 > spare:
            return False
        text = f"{seq.name}: {len(hits) * size} of {len(everything)} tokens found"
        self.emit(Mark, "cache", "lookup", text)
        for place, page in enumerate(hits):
            self.idle.pop(page, None)
            self.holders.setdefault(page, []).append(seq.name)
            self.emit(Page, page, seq.name, "hit", start=place * size, tokens=size)
        seq.pages, seq.computed = hits, len(hits) * size
        seq.state = "prefill"
        self.emit(Branch, seq.name, state="running")
        self.live.append(seq)
        return True

    def room(self, seq: Sequence, upto: int) -> bool:
        while len(seq.pages) * self.page_size < upto:
            page = self.take(seq.name, len(seq.pages) * self.page_size)
            if page is None:
                return False
            seq.pages.append(page)
        last = (upto - 1) // self.page_size
        page = seq.pages[last]
        if len(self.holders[page]) > 1:
            if not self.free and not self.evict():
                return False
            fresh = self.free.pop(0)
            self.holders[fresh] = [seq.name]
            self.emit(Page, fresh, seq.name, "copy", start=last * self.page_size, parent=page)
            self.leave(page, seq.name, "written by a fork")
            seq.pages[last] = fresh
        return True

    def preempt(self, seq: Sequence) -> None:
        short = self.random.randint(1, 6)
        self.live.remove(seq)
        if self.random.random() < 0.5 and len(self.host_free) >= len(seq.pages):
            for place, page in enumerate(seq.pages):
                host = self.host_free.pop(0)
                seq.host.append(host)
                start = place * self.page_size
                self.emit(Page, page, seq.name, "swap_out", start=start, parent=host)
                self.holders[page].remove(seq.name)
                if not self.holders[page]:
                    del self.holders[page]
                    if page in self.node:
                        self.idle[page] = self.steps
                    else:
                        self.emit(Page, page, "", "free", why="swapped out")
                        self.free.append(page)
            seq.pages, seq.state = [], "swapped"
            how = "swapped to host"
        else:
            self.drop_all(seq, "preempted")
            seq.computed, seq.state, how = 0, "preempted", "recomputed later"
        why = f"request {seq.name} preempted, {how}: {short} pages short"
        self.emit(Mark, "scheduler", "preempt", why)
        self.emit(Branch, seq.name, state=seq.state, why=why)
        self.waiting.insert(0, seq)

    def back(self, seq: Sequence) -> bool:
        while len(self.free) < len(seq.host) + 2:
            if not self.evict():
                return False
        for place, host in enumerate(seq.host):
            page = self.free.pop(0)
            self.holders[page] = [seq.name]
            start = place * self.page_size
            self.emit(Page, page, seq.name, "swap_in", start=start, parent=host)
            seq.pages.append(page)
            self.host_free.append(host)
        seq.host, seq.state = [], "decode"
        self.emit(Branch, seq.name, state="running")
        self.live.append(seq)
        return True

    def drop_all(self, seq: Sequence, why: str) -> None:
        for page in reversed(seq.pages):
            self.leave(page, seq.name, why)
        seq.pages = []

    def end(self, seq: Sequence, state: str, why: str) -> None:
        if state == "finished":
            self.index(seq)
        self.drop_all(seq, state)
        self.live.remove(seq)
        seq.state = state
        self.emit(Branch, seq.name, seq.parent, state, why)

    def fork(self, seq: Sequence, name: str) -> None:
        child = Sequence(name, seq.prompt, seq.want, seq.name, list(seq.tokens), seq.computed)
        self.emit(Branch, name, seq.name, "running")
        for place, page in enumerate(seq.pages):
            self.holders[page].append(name)
            self.emit(Page, page, name, "share", start=place * self.page_size)
        child.pages, child.state = list(seq.pages), "decode"
        self.live.append(child)

    # --- one step ----------------------------------------------------------------------------
    def step(self, budget: int = 96) -> None:
        while self.waiting:
            first = self.waiting[0]
            if not (self.back(first) if first.host else self.admit(first)):
                break
            self.waiting.pop(0)
        chunks, spoke, start = [], [], self.now
        for seq in list(self.live):
            if seq not in self.live:
                continue
            everything = len(seq.prompt) + len(seq.tokens)
            upto = min(everything, seq.computed + budget) if seq.state == "prefill" else everything
            if upto <= seq.computed and seq.state == "prefill":
                continue
            while not self.room(seq, upto):
                victim = self.live[-1]
                self.preempt(victim)
                if victim is seq:
                    break
            if seq not in self.live:
                continue
            if seq.state == "prefill":
                budget -= upto - seq.computed
                chunks.append((seq, seq.computed, upto))
            seq.computed = upto
            if upto == everything:
                spoke.append(seq)
        prefilled = sum(stop - begin for _, begin, stop in chunks)
        self.now += 0.004 + 0.0002 * len(spoke) + 0.00012 * prefilled
        self.now += self.random.random() * 0.001 if self.clock == "wall" else 0.0
        for seq, begin, stop in chunks:
            self.emit(Span, seq.name, "prefill", start, tag=f"{begin}:{stop}")
        for seq in spoke:
            if seq in self.live:
                self.speak(seq)
        decoding = len(spoke)
        tag = f"decode={decoding} prefill={prefilled}"
        self.emit(Span, "engine", "step", start, flops=1e9, bytes=1e8, tag=tag)
        self.steps += 1
        self.levels(decoding + prefilled)

    def speak(self, seq: Sequence) -> None:
        seq.state = "decode"
        self.index(seq)
        if self.random.random() < 0.06:
            self.emit(Token, seq.name, self.random.choice(WORDS), -3.0, accepted=False)
        word = self.random.randrange(len(WORDS))
        seq.tokens.append(1000 + word)
        seq.said += 1
        self.emit(Token, seq.name, WORDS[word], -self.random.expovariate(1.2))
        if seq.said >= seq.want:
            self.end(seq, "finished", self.random.choice(["stop", "length"]))

    def levels(self, tokens: int) -> None:
        used, cached = len(self.holders), len(self.idle)
        counts = {
            "running": len(self.live),
            "waiting": len(self.waiting),
            "pages_used": used,
            "pages_cached": cached,
            "pages_free": len(self.free),
            "pages_host": sum(len(s.host) for s in self.waiting),
            "tokens_step": tokens,
        }
        for name, value in counts.items():
            self.emit(Level, "engine", name, float(value))

    def attention(self) -> None:
        mass = np.zeros(self.pages, np.float32)
        for page, held in self.holders.items():
            mass[page] = len(held) * self.random.random() ** 3
        ref = f"mass{self.steps}"
        self.log.blobs[ref] = mass / max(mass.sum(), 1e-9)
        self.emit(Blob, "attention_mass", ref, [self.pages])
        self.emit(Span, "engine", "attention sample", self.now - 0.0003)
