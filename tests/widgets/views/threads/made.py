"""Made-up runs of threads: workers over one cache, a tree that forks and joins, pruned branches."""

import random

import numpy as np

from engine.core.events import (
    AnyEvent,
    Blob,
    Branch,
    Closed,
    Level,
    Mark,
    Opened,
    Span,
    Token,
)
from engine.core.log import Log

TEXT = " so let us try 13 + 7 = 20 and then times four gives 80 which is too much\n wait"
WORDS = TEXT.split(" ")


def log(*events: AnyEvent, clock: str = "wall", close: bool = True, **facts) -> Log:
    """These events in order of time under a header with these facts."""
    ordered = sorted(events, key=lambda event: event.time)
    end = ordered[-1].time if ordered else 0.0
    tail = [Closed(end, "finished")] if close else []
    return Log([Opened(0.0, {}, facts=facts, clock=clock), *ordered, *tail])


def says(thread: str, start: float, count: int, step: float = 1.0, text: str = "x") -> list[Token]:
    """`count` tokens, the first at `start` seconds."""
    return [Token(start + i * step, thread, text, -0.5) for i in range(count)]


def workers(count: int = 4, tokens: int = 200, *, seed: int = 0, **facts) -> Log:
    """Workers that each say a token a step and see each other's blocks at moving offsets."""
    dice, events, step = random.Random(seed), [], 0.01
    names = [f"w{i}" for i in range(count)]
    for i, name in enumerate(names):
        events.append(Branch(0.0, name, "", "running"))
        events.append(Level(0.0, name, "sees/prompt", 0.0))
        for j, other in enumerate(names):
            events.append(Level(0.0, name, f"sees/{other}", 128.0 + 16 * ((j - i) % count)))
    for n in range(1, tokens + 1):
        now = n * step
        for i, name in enumerate(names):
            events.append(Token(now, name, " " + dice.choice(WORDS), -dice.expovariate(1.3)))
            if n % 16 == 0:
                for j, other in enumerate(names):
                    offset = 128.0 + (n + 16) * ((j - i - 1) % count)
                    events.append(Level(now, name, f"sees/{other}", offset))
        events.append(Span(now, "engine", "step", now - step))
    end = tokens * step
    events.append(Mark(end * 0.4, "w1", "said", "<b>check the sum again</b>"))
    events.append(Mark(end, "w0", "answer", "80 − 60 = 20"))
    events += [Branch(end, name, "", "finished", "end of text") for name in names]
    return log(*events, **facts)


def family(seed: int = 1, *, clock: str = "wall", **facts) -> Log:
    """A parent forks twice, waits, reads what its children found, goes on; one is pruned."""
    dice, events, now, step = random.Random(seed), [], 0.0, 0.01

    def spoke(*threads: str, count: int) -> None:
        nonlocal now
        for _ in range(count):
            now += step
            for thread in threads:
                word = " " + dice.choice(WORDS)
                events.append(Token(now, thread, word, -dice.expovariate(1.5)))
            events.append(Span(now, "engine", "step", now - step))

    events.append(Branch(0.0, "main", "", "running"))
    events.append(Level(0.0, "main", "sees/main", 0.0))
    spoke("main", count=30)
    for turn, many in enumerate((3, 4)):
        children = [f"main.{turn * 4 + i}" for i in range(many)]
        for child in children:
            events.append(Branch(now, child, "main", "running"))
            events += [
                Level(now, child, "sees/main", 0.0),
                Level(now, child, f"sees/{child}", 40.0),
            ]
        events.append(Branch(now, "main", "", "waiting"))
        spoke(*children, count=25)
        if turn:
            why = "the judge: same answer as its brother (0.93)"
            events.append(Branch(now, children[1], "main", "pruned", why))
            events.append(Level(now, children[1], "sees/main", -1.0))
        spoke(children[0], children[2], count=20)
        for child in (children[0], children[2]):
            events.append(Branch(now, child, "main", "joined"))
            events.append(Level(now, "main", f"sees/{child}", 70.0 + 45 * turn))
        events.append(Mark(now, "main", "join", f"{children[0]}, {children[2]}"))
        events.append(Branch(now, "main", "", "running"))
        spoke("main", count=25)
    events.append(Mark(now, "main", "answer", "(13 + 7) × 4"))
    events.append(Mark(now, "main", "verdict", "right"))
    events.append(Branch(now, "main", "", "finished", "end of text"))
    return log(*events, clock=clock, **facts)


def looked(count: int = 3, tokens: int = 40, every: int = 5) -> Log:
    """Workers whose attention is sampled every so many steps: the prompt gets less and less."""
    made, events = workers(count, tokens), []
    found = Log()
    for event in made:
        step = round(event.time * 100)
        if isinstance(event, Token) and event.thread == "w0" and step % every == 0:
            share = 0.9 - 0.6 * step / tokens
            others = (1 - share) / count
            ref = f"attention_views/{step}"
            found.blobs[ref] = np.array([[share] + [others] * count] * count, np.float32)
            events.append(Blob(event.time, "attention_views", ref, [count, count + 1]))
        events.append(event)
    for event in events:
        found.emit(event)
    return found
