"""What every request says, token by token, and how likely the model held each token.

In come a run's events; out goes one frame of columns with every token so far. Token texts lie
end to end in one array of UTF-8 bytes, each with where it stops.
"""

from typing import Any, Self

import numpy as np

from engine.core.events import AnyEvent, Branch, Opened, Token
from widgets.columns import Columns
from widgets.fold import Fold
from widgets.looks import look
from widgets.theme import figure

QUESTION = "What does each request say, and how sure is it of each token?"
EMPTY = "No tokens yet. Start a run, or open a recorded one: every token flows in here."
OVER = ("finished", "aborted", "rejected", "pruned", "joined")
LONGEST = 200  # bytes kept of one token's text


class TokenRiver(Fold):
    """Folds tokens into lanes. A lane's number is its place in order of appearance."""

    def __init__(self) -> None:
        self.clock, self.run, self.now = "wall", "", 0.0
        self.lanes: dict[str, int] = {}
        self.looks = Columns(hue="u1", texture="u1", born="f8")  # a row for each lane
        self.ended: dict[int, float] = {}
        self.refused, self.surprise = 0, 0.0
        self.tokens = Columns(lane="i4", time="f8", logprob="f4", accepted="u1", stop="i4")
        self.text = Columns(byte="u1")
        self._changes, self._framed = 0, -1
        self._frame: dict[str, Any] = {}

    def add(self, event: AnyEvent) -> None:
        self._changes += 1
        self.now = event.time
        match event:
            case Token():
                self._token(event)
            case Branch() if event.state in OVER:
                if event.thread in self.lanes:
                    self.ended[self.lanes[event.thread]] = event.time
            case Opened():
                self.clock = event.clock
                self.run = f"{event.study} {event.seed} {len(str(event.config))}"

    def _token(self, event: Token) -> None:
        lane = self.lanes.get(event.thread)
        if lane is None:
            lane = self.lanes[event.thread] = len(self.lanes)
            self.looks.append(*look(event.thread), event.time)
        raw = event.text.encode("utf-8", "replace")
        if len(raw) > LONGEST:
            raw = raw[:LONGEST].decode("utf-8", "ignore").encode()
        self.text.extend(np.frombuffer(raw, np.uint8))
        likely = max(event.logprob, -100.0)
        self.tokens.append(lane, event.time, likely, event.accepted, len(self.text))
        self.refused += not event.accepted
        self.surprise -= likely if event.accepted else 0.0

    def copy(self) -> Self:
        other: Any = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name in ("lanes", "looks", "ended", "tokens", "text"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def frame(self) -> dict[str, Any]:
        """Every token so far; the same object again while nothing has happened."""
        if self._framed != self._changes:
            self._framed = self._changes
            self._frame = self._draw()
        return self._frame

    def _draw(self) -> dict[str, Any]:
        names = list(self.lanes)
        return {
            "question": QUESTION,
            "empty": "" if names else EMPTY,
            "modelled": self.clock == "virtual",
            "run": self.run,
            "now": self.now,
            "lanes": len(names),
            "names": names,
            **{k: self.looks[k] for k in self.looks.types},
            "ended": np.array([self.ended.get(i, np.nan) for i in range(len(names))], np.float64),
            **{f"token_{k}": self.tokens[k] for k in self.tokens.types},
            "text": self.text["byte"],
            "figures": self._figures(),
        }

    def _figures(self) -> list[list[str]]:
        count = len(self.tokens) - self.refused
        first = float(self.tokens["time"][0]) if len(self.tokens) else 0.0
        took = self.now - first
        rate = count / took if took > 0 else float("nan")
        mean = figure(-self.surprise / count if count else float("nan"))
        figures = [
            ["tokens", f"{count:,}"],
            ["tokens per second", f"{rate:,.0f}" if rate >= 1000 else figure(rate)],
            ["mean log-probability", mean.replace("-", "−")],
        ]
        if self.refused:
            figures.append(["drafts refused", figure(self.refused / len(self.tokens), "%")])
        return figures
