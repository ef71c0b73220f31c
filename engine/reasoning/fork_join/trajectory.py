"""Trajectory: forks and joins as ordinary requests, of which a join is a longer prompt.

A trajectory writes outlines; each becomes a request of its own, seeded with its number, and sees no
sibling. When all have ended, their texts stand one after the other in the next request (arXiv
2512.07843). Nothing here knows positions or caches: asks go out, replies come in.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from engine.core.config import Config, knob

NUMBER = re.compile(r"(\d+)\s*:", re.ASCII)
Tell = Callable[[str, str, str], None]  # lane, name, sentence


class Marks(Config):
    """The words a model writes around its outlines, and those it is seeded with."""

    outlines: str = knob("<Outlines>", "Begins the outlines, each `number: what to do`")
    outlined: str = knob("</Outlines>", "Ends them: here the threads fork")
    thread: str = knob("<Thread>", "Seeds a thread, before its number and a colon")
    closed: str = knob("</Thread>", "Ends a thread")
    joined: str = knob("</Parallel>", "Said for the model after the threads, at the join")


class Limits(NamedTuple):
    """What a trajectory may use. Zero: as much as it likes, except of `segment` and `threads`."""

    segment: int  # tokens of one request
    threads: int  # of one fork; what is asked for beyond is left out
    together: int = 0  # of them under way at once
    critical: int = 0  # tokens on the longest chain of requests that wait for each other
    total: int = 0  # tokens of all requests together
    apart: bool = True  # off: a thread waits for its elder siblings and reads them, a mistake


class Ask(NamedTuple):
    """A request to be sent: a prompt, a text that ends the answer and tokens it may have.

    `parent` and `reads`, the threads it joins, are for whoever shows it; the prompt says it all.
    """

    name: str
    parent: str
    prompt: str
    stop: str
    tokens: int
    reads: tuple[str, ...] = ()


class Reply(NamedTuple):
    """What came back. `reason`: stop, length, or failed, with what went wrong in `fault`."""

    name: str
    text: str
    tokens: int
    reason: str
    fault: str = ""


class Service(Protocol):
    """Whoever answers requests: our engine in this process, or a server."""

    def ask(self, ask: Ask) -> None:
        """Send a request; what goes wrong with it is told in its reply."""
        ...

    def replies(self) -> list[Reply]:
        """What has been answered: waits for a reply, or takes a step towards one."""
        ...


class Trajectory:
    """One problem's text, growing by requests. `begin`, then `take` replies until `over`."""

    def __init__(self, name: str, prompt: str, limits: Limits, marks: Marks, tell: Tell) -> None:
        self.name, self.prompt, self.text = name, prompt, prompt
        self.limits, self.marks, self.tell = limits, marks, tell
        self.over, self.fault = False, ""  # the fault that ended it
        self.tokens, self.critical = 0, 0  # generated: of all requests, on the longest chain
        self.prompts: dict[str, str] = {}  # of all requests, as sent
        self.replies: dict[str, Reply] = {}
        self.forks = 0
        self.main = name  # the latest request that is no thread
        self._seeds: dict[str, str] = {}  # of the present fork's threads, in order
        self._begun: dict[str, int] = {}  # where on the chain each of them began
        self._ends: dict[str, int] = {}  # … and ended
        self._said: dict[str, str] = {}
        self._waiting: deque[str] = deque()

    @property
    def said(self) -> str:
        """All text after the prompt."""
        return self.text[len(self.prompt) :]

    def begin(self) -> list[Ask]:
        """The first request."""
        return self._go_on(self.name, "")

    def take(self, reply: Reply) -> list[Ask]:
        """What to send now that `reply` is here; nothing while threads are waited for."""
        self.tokens += reply.tokens
        self.replies[reply.name] = reply
        if reply.name in self._seeds:
            return self._take_thread(reply)
        self.critical += reply.tokens
        self.text += reply.text
        if reply.reason == "failed":
            return self._end(f"{reply.name}: {reply.fault}")
        if reply.reason == "stop" and self._outlines_open():
            return self._fork()
        if reply.reason == "length":
            self.tell(reply.name, "cut", f"{reply.name} has used its {reply.tokens} tokens")
        return self._end()

    def _outlines_open(self) -> bool:
        """Whether what it stopped at was the end of its outlines; servers do not say at what."""
        return self.text.rfind(self.marks.outlines) > self.text.rfind(self.marks.outlined)

    def _fork(self) -> list[Ask]:
        outlines = self.text[self.text.rfind(self.marks.outlines) + len(self.marks.outlines) :]
        self.text += self.marks.outlined
        numbers = list(dict.fromkeys(NUMBER.findall(outlines)))
        if not numbers:
            return self._end(f"{self.main}: its outlines name no thread; write `1: what to do`")
        most = self.limits.threads
        if len(numbers) > most:
            left = ", ".join(numbers[most:])
            self.tell(self.main, "refuse", f"a fork may have {most} threads; without {left}")
        numbers = numbers[:most]
        self.forks += 1
        self._seeds = {f"{self.main}.{n}": f"{self.marks.thread}{n}:" for n in numbers}
        self._begun, self._ends, self._said = {}, {}, {}
        self._waiting = deque(self._seeds)
        together = (self.limits.together or len(numbers)) if self.limits.apart else 1
        first = [self._waiting.popleft() for _ in numbers[:together]]
        return self._start(first, self.critical)

    def _start(self, names: list[str], begun: int) -> list[Ask]:
        """Requests of these threads, which have to wait for `begun` tokens."""
        share = self._left(begun, len(self._seeds) - len(self._ends))
        asks = []
        for name in names:
            self._begun[name] = begun
            if share < 1:
                asks += self._close(name, "", begun, "no budget is left for it")
                continue
            elder = "" if self.limits.apart else self._ended()
            prompt = self.text + elder + self._seeds[name]
            self.prompts[name] = prompt
            asks.append(Ask(name, self.main, prompt, self.marks.closed, share))
        return asks

    def _take_thread(self, reply: Reply) -> list[Ask]:
        fault = ""
        if reply.reason == "failed":
            fault = f"{reply.fault}; it says nothing at the join"
        elif reply.reason == "length":
            fault = f"not closed within {reply.tokens} tokens; closed for it"
        text = "" if reply.reason == "failed" else reply.text
        return self._close(reply.name, text, self._begun[reply.name] + reply.tokens, fault)

    def _close(self, name: str, text: str, end: int, fault: str) -> list[Ask]:
        """A thread is over; another may start in its place, or all are there."""
        if fault:
            self.tell(name, "fault", f"{name}: {fault}")
        self._ends[name], self._said[name] = end, text
        if self._waiting:
            return self._start([self._waiting.popleft()], end)
        return self._join() if len(self._ends) == len(self._seeds) else []

    def _join(self) -> list[Ask]:
        """The threads' texts in the order of the outlines, then on."""
        self.text += self._ended() + self.marks.joined
        self.critical = max(self._ends.values())
        before, reads = self.main, tuple(self._seeds)
        self._seeds = {}
        self.main = f"{self.name}-{self.forks}"
        return self._go_on(self.main, before, reads)

    def _ended(self) -> str:
        """What the threads that are over have said, in the order of the outlines."""
        over = [name for name in self._seeds if name in self._said]
        return "".join(self._seeds[n] + self._said[n] + self.marks.closed for n in over)

    def _go_on(self, name: str, parent: str, reads: tuple[str, ...] = ()) -> list[Ask]:
        """The next request that is no thread."""
        left = self._left(self.critical, 1)
        if left < 1:
            return self._end(f"{name}: no budget is left to go on")
        self.prompts[name] = self.text
        return [Ask(name, parent, self.text, self.marks.outlined, left, reads)]

    def _left(self, begun: int, among: int) -> int:
        """Tokens that each of `among` requests may have."""
        found = self.limits.segment
        if self.limits.critical:
            found = min(found, self.limits.critical - begun)
        if self.limits.total:
            found = min(found, (self.limits.total - self.tokens) // max(1, among))
        return found

    def _end(self, fault: str = "") -> list[Ask]:
        self.over, self.fault = True, fault
        if fault:
            self.tell(self.name, "fault", fault)
        return []


class Forks:
    """Trajectories under way at one service: their requests go out, replies come in."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.owner: dict[str, Trajectory] = {}  # of each request under way
        self.running = 0  # trajectories
        self._over: list[Trajectory] = []

    def begin(self, one: Trajectory) -> None:
        """Send the first request of a trajectory."""
        self.running += 1
        self._send(one, one.begin())

    def step(self) -> list[Trajectory]:
        """Hear the service once; the trajectories that are over now."""
        for reply in self.service.replies() if self.owner else ():
            one = self.owner.pop(reply.name)
            self._send(one, one.take(reply))
        over, self._over = self._over, []
        self.running -= len(over)
        return over

    def _send(self, one: Trajectory, asks: list[Ask]) -> None:
        for ask in asks:
            self.owner[ask.name] = one
            self.service.ask(ask)
        if one.over:
            self._over.append(one)


def fork_and_join(
    trajectories: Iterable[Trajectory], service: Service, together: int = 64
) -> Iterator[Trajectory]:
    """Run all of them to their ends, `together` at once; each as it is over."""
    waiting, forks = deque(trajectories), Forks(service)
    while waiting or forks.running:
        while waiting and forks.running < together:
            forks.begin(waiting.popleft())
        yield from forks.step()
