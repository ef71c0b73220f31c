"""ThreadTable: threads, their blocks and who sees what; start, fork, join, prune, no tensors.

What is asked and cannot be done raises BadInput and changes nothing. Every change is emitted.
"""

from collections.abc import Callable

from engine.cache.cache import Cache
from engine.cache.eviction import LeastRecentlyUsed
from engine.cache.layouts import Block, Sight, abreast, placed
from engine.core.clock import Clock
from engine.core.errors import BadInput
from engine.core.events import Branch, Mark
from engine.core.names import suggest
from engine.reasoning.threads.budget import Budget
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.reference import Record
from engine.reasoning.threads.step_events import Emit, tell_sights
from engine.reasoning.threads.thread import State, Thread
from engine.reasoning.threads.thread_pages import ThreadPages

MOST = -1  # a budget not named: the config's


class ThreadTable:
    """All threads of one run. `clock` has the time that events carry."""

    def __init__(
        self,
        config: ReasoningConfig,
        clock: Clock,
        emit: Emit,
        cache: Cache | None = None,
        make_room: Callable[[int], None] | None = None,
    ) -> None:
        """`cache`: the one whose pages threads share with an engine's requests, which
        `make_room` lets yield until so many pages can be taken."""
        self.config, self.clock, self.emit = config, clock, emit
        lru = LeastRecentlyUsed()
        self.cache = cache or Cache(config.pages, config.page_size, lru, clock, emit)
        self.make_room = make_room
        self.holdings = ThreadPages(self.cache, config.fault == "copied")
        self.threads: dict[str, Thread] = {}  # all there have been, by name
        self.alive: dict[str, Thread] = {}  # those that think or will
        self.closed: list[Block] = []  # the prompt, then as they were closed
        self.record: Record | None = Record() if config.keep_logits else None
        self._opened = 0

    @property
    def running(self) -> list[Thread]:
        """Threads that think now, in order of appearance."""
        return [thread for thread in self.alive.values() if thread.state == "running"]

    def open(self, name: str, owner: str) -> Block:
        """A new block for `owner` to write to."""
        self._opened += 1
        return Block(name, owner, self._opened)

    def start(
        self, name: str, feed: list[int], budget: int = MOST, *, alone: bool = False
    ) -> Thread:
        """A thread that sees the prompt (nothing, if `alone`) and goes on with `feed`.

        Raises BadInput.
        """
        self._admit(f"start of {name}", budget)
        if name in self.threads:
            raise BadInput(f"start of {name}: there is a thread of that name")
        block = self.open(f"{name}/1", name)
        number, budget = len(self.threads), self._budget(budget)
        return self._enter(Thread(name, "", number, budget, block, feed, alone=alone))

    def spawn(self, parent: str, feed: list[int], budget: int = MOST) -> Thread:
        """A thread that knows `feed` alone, and hands something back to `parent` in the end.

        Raises BadInput.
        """
        source = self._alive(parent, "spawn")
        self._admit(f"spawn by {parent}", budget)
        if not self.has_room(-(-len(feed) // self.cache.page_size)):
            raise BadInput(
                f"spawn by {parent}: {self.cache.available} of {self.cache.pool.total} pages are "
                f"left, too few for {len(feed)} tokens; prune a thread or give more pages"
            )
        name = self._child(parent)
        child = Thread(
            name, parent, len(self.threads), self._budget(budget), self.open(f"{name}/1", name),
            feed, depth=source.depth, alone=True,
        )  # fmt: skip
        self.emit(Mark(self.clock.now(), parent, "spawn", f"{parent} spawns {name}"))
        return self._enter(child)

    def wait(self, name: str, why: str) -> None:
        """The thread pauses. Raises BadInput where it does not run."""
        thread = self._alive(name, "pause")
        thread.state = "waiting"
        self.emit(Branch(self.clock.now(), name, thread.parent, "waiting", why))

    def resume(self, name: str, feed: list[int], depth: int) -> None:
        """A waiting thread goes on and reads `feed`; what it waited for had `depth` tokens.

        Raises BadInput where it does not wait.
        """
        thread = self.threads.get(name)
        if thread is None or thread.state != "waiting":
            raise BadInput(f"resume of {name}: it does not wait")
        thread.state, thread.depth = "running", max(thread.depth, depth)
        thread.feed += feed
        self.emit(Branch(self.clock.now(), name, thread.parent, "running"))

    def fork(self, parent: str, budget: int | Budget = MOST) -> Thread:
        """A thread that goes on from where `parent` is; a page is copied when it is written to."""
        source = self._alive(parent, "fork")
        self._admit(f"fork of {parent}", budget)
        if not self.has_room(self.holdings.need(source.block, len(source.feed)) + 1):
            raise BadInput(
                f"fork of {parent}: {self.cache.available} of {self.cache.pool.total} pages are "
                "left, too few for both to go on; prune a thread or give more pages"
            )
        given = budget if isinstance(budget, Budget) else Budget(max(0, budget))
        name = self._child(parent)
        block = self.open(f"{name}/{source.step}", name)
        self.holdings.fork(source.block, block)
        if self.record is not None:
            self.record.fork(block.name, source.block.name, block.length)
        child = Thread(
            name, parent, len(self.threads), given.tokens or self.config.budget, block,
            source.feed.copy(), depth=source.depth, step=source.step, reads=source.reads.copy(),
            alone=source.alone, critical=given.critical, seconds=given.seconds,
        )  # fmt: skip
        self.emit(
            Mark(self.clock.now(), parent, "fork", f"{parent} forks: {name} goes on from here")
        )
        return self._enter(child)

    def join(self, parent: str, child: str) -> None:
        """`child` ends, and `parent` sees all that it wrote from now on."""
        reader, other = self._alive(parent, "join"), self._alive(child, "join")
        if reader is other:
            raise BadInput(f"join of {child}: a thread cannot join itself")
        reader.reads += [block for block in self.closed if block.owner == child]
        if other.block.length:
            reader.reads.append(other.block)
        reader.depth = max(reader.depth, other.depth)
        self.emit(Mark(self.clock.now(), parent, "join", f"{parent} reads all that {child} wrote"))
        self.end(other, "joined", f"joined by {parent}")

    def prune(self, name: str, why: str = "", state: State = "pruned") -> None:
        """End a thread, waiting or not, and take its words out of everybody's view."""
        thread = self._alive(name, "prune", waiting=True)
        self.closed = [block for block in self.closed if block.owner != name]
        for other in self.alive.values():
            other.reads = [block for block in other.reads if block.owner != name]
        said = f"{name} is {state}: {why}" if why else f"{name} is {state}"
        self.emit(Mark(self.clock.now(), name, "prune", said))
        self.end(thread, state, why)

    def say(self, name: str, tokens: list[int], text: str) -> None:
        """Put words into a thread's mouth: they are written before its next token."""
        self._alive(name, "say", waiting=True).feed += tokens
        self.emit(Mark(self.clock.now(), name, "say", f"{name} is told: {text.strip()[:80]}"))

    def has_room(self, pages: int) -> bool:
        """Whether `pages` can be taken, requests of the same engine yielding theirs."""
        if self.make_room is not None and self.cache.available < pages:
            self.make_room(pages)
        return self.cache.available >= pages

    def spent(self, thread: Thread) -> str:
        """Which of its budgets the thread has used up, in words; empty where none."""
        config, used = self.config, self.clock.now() - thread.born
        critical, seconds = thread.critical or config.critical, thread.seconds or config.seconds
        if len(thread.tokens) >= thread.budget:
            return f"its budget of {thread.budget} tokens is spent"
        if critical and thread.depth >= critical:
            return f"the critical path has its {critical} tokens"
        if seconds and used >= seconds:
            return f"its budget of {seconds:.3g} s is spent"
        return ""

    def view(self, thread: Thread) -> list[Sight]:
        """What `thread` sees now, its own block last."""
        if thread.alone:
            lay = abreast if thread.abreast else placed
            return lay([*thread.reads, thread.block])
        opened = [
            t.block
            for t in self.alive.values()
            if t is not thread and t.block.length and not t.alone
        ]
        blocks = self.config.layout.order(thread.name, self.closed, opened)
        blocks += [block for block in thread.reads if block not in blocks]
        return placed([*blocks, thread.block])

    def close(self, thread: Thread) -> None:
        """The thread's block is closed; it goes on in a new one."""
        thread.block.open = False
        (thread.reads if thread.alone else self.closed).append(thread.block)
        thread.step += 1
        thread.block = self.open(f"{thread.name}/{thread.step}", thread.name)

    def end(self, thread: Thread, state: State, why: str = "") -> None:
        """`thread` thinks no more; what it wrote stays unless it is pruned or aborted."""
        thread.state, thread.why = state, why
        if state in ("finished", "joined") and thread.block.length and not thread.alone:
            thread.block.open = False
            self.closed.append(thread.block)
        del self.alive[thread.name]
        for other in self.alive.values():
            if not other.alone or thread.block in other.reads:
                self.holdings.see(other, self.view(other))  # before its pages would be free
        tell_sights(self.emit, self.clock.now(), thread, [])
        self.holdings.release(thread)
        self.closed = [block for block in self.closed if block.row >= 0]
        self.emit(Branch(self.clock.now(), thread.name, thread.parent, state, why))

    def _enter(self, thread: Thread) -> Thread:
        thread.seed = self.config.seed * 1_000_003 + thread.number
        thread.born = self.clock.now()
        self.threads[thread.name] = self.alive[thread.name] = thread
        self.emit(Branch(self.clock.now(), thread.name, thread.parent, "queued"))
        self.emit(Branch(self.clock.now(), thread.name, thread.parent, "running"))
        self.holdings.see(thread, self.view(thread))
        return thread

    def _admit(self, what: str, budget: int | Budget) -> None:
        running = len(self.running)
        if running >= self.config.threads:
            raise BadInput(
                f"{what}: {running} threads run and at most {self.config.threads} may; "
                "join or prune one first"
            )
        if isinstance(budget, int) and (budget == 0 or budget < MOST):
            raise BadInput(f"{what}: a budget of {budget} tokens; give at least 1")

    def _budget(self, budget: int) -> int:
        return self.config.budget if budget == MOST else budget

    def _child(self, parent: str) -> str:
        return f"{parent}.{sum(t.parent == parent for t in self.threads.values()) + 1}"

    def _alive(self, name: str, what: str, waiting: bool = False) -> Thread:
        thread = self.threads.get(name)
        if thread is None:
            raise BadInput(f"{what} of {name}: no such thread; {suggest(name, self.threads)}")
        if not thread.alive:
            why = f" ({thread.why})" if thread.why else ""
            raise BadInput(f"{what} of {name}: it is {thread.state} already{why}")
        if not (thread.running or waiting):
            raise BadInput(f"{what} of {name}: it waits for its children; let them end first")
        return thread
