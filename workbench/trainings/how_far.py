"""How far a training is, in a line now and then: whoever waits for minutes sees that it goes on."""

import time
from collections.abc import Callable

from engine.core.events import AnyEvent, Span

EVERY = 15.0  # seconds between two lines
STRETCHES = ("steps", "round")  # names of spans whose tag says from which step to which


class HowFar:
    """Hears a training's events. `what`: as a line begins; `steps`: of it in all, one loop after
    another."""

    def __init__(
        self,
        what: str,
        steps: int,
        tell: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.what, self.steps, self.tell, self.now = what, steps, tell, now
        self.began = self.told = now()
        self.before = self.last = 0  # steps of the loops before; the last one done of this loop
        self.first: int | None = None  # the step from which seconds are counted: the first heard of

    def __call__(self, event: AnyEvent) -> None:
        if not isinstance(event, Span) or event.name not in STRETCHES:
            return
        since, last = map(int, event.tag.split(":"))
        if since < self.last:
            self.before += self.last
        self.last = last
        now, done = self.now(), self.before + last
        if self.first is None:  # neither preparing nor a checkpoint took steps of this call
            self.first, self.began = done, now
        elif now - self.told >= EVERY and done < self.steps:
            left = (now - self.began) * (self.steps - done) / (done - self.first)
            self.tell(f"{self.what}: {done:,} of {self.steps:,} steps, about {left:,.0f} s left")
            self.told = now
