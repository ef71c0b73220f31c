"""Fold of `Token` events: what every request says, and how likely the model held each token.

In come a run's events; out goes one frame of columns with every token so far. Token texts lie
end to end in one array of UTF-8 bytes, each with where it stops.
"""

from typing import Any

import numpy as np

from engine.core.events import AnyEvent, Branch, Span, Token
from widgets.canvas.columns import Columns
from widgets.canvas.fold import LaneFold
from widgets.canvas.running import AT_END, Running, counting, mean, running
from widgets.theme import figure
from widgets.views.token_river.drafts import parts, verified

QUESTION = "What does each request say, and how sure is it of each token?"
EMPTY = "No tokens yet. Start a run, or open a recorded one: every token flows in here."
OVER = ("finished", "aborted", "rejected", "pruned", "joined")
LONGEST = 200  # bytes kept of one token's text
LATELY = 5.0  # seconds before the cursor that a rate is over


class TokenRiver(LaneFold):
    """Folds tokens into lanes."""

    question, empty = QUESTION, EMPTY
    own = (*LaneFold.own, "ended", "tokens", "text")

    def __init__(self) -> None:
        super().__init__()
        self.ended: dict[int, float] = {}
        self.refused, self.surprise = 0, 0.0
        self.drafting = False  # tokens of one moment are drafts, and what the target said
        self.tokens = Columns(
            lane="i4", time="f8", logprob="f4", accepted="u1", branch="u1", stop="i4"
        )
        self.text = Columns(byte="u1")

    def take(self, event: AnyEvent) -> None:
        match event:
            case Token():
                self._token(event)
            case Span(lane="verify"):
                self.drafting = True
            case Branch() if event.state in OVER:
                if event.thread in self.lanes:
                    self.ended[self.lanes[event.thread]] = event.time

    def _token(self, event: Token) -> None:
        lane = self.lane(event.thread)
        raw = event.text.encode("utf-8", "replace")
        if len(raw) > LONGEST:
            raw = raw[:LONGEST].decode("utf-8", "ignore").encode()
        self.text.extend(np.frombuffer(raw, np.uint8))
        likely = max(event.logprob, -100.0)
        branch = min(event.branch, 255)
        self.tokens.append(lane, event.time, likely, event.accepted, branch, len(self.text))
        self.refused += not event.accepted
        self.drafting = self.drafting or not event.accepted
        self.surprise -= likely if event.accepted else 0.0

    def draw(self) -> dict[str, Any]:
        """Every token so far."""
        ended = [self.ended.get(lane, np.nan) for lane in range(len(self.lanes))]
        return {
            **self.named(),
            "ended": np.array(ended, np.float64),
            **{f"token_{k}": self.tokens[k] for k in self.tokens.types},
            "token_part": self._parts(),
            "drafting": self.drafting,
            "text": self.text["byte"],
            "figures": self._figures(),
            **running(self._running()),
        }

    def _parts(self) -> np.ndarray:
        if not self.drafting:
            return np.zeros(len(self.tokens), np.uint8)
        return parts(*(self.tokens[k] for k in ("lane", "time", "accepted", "branch")))

    def _passes(self) -> tuple[np.ndarray, np.ndarray]:
        """Verifications, and what each came to; none of a run without drafts."""
        if not self.drafting:
            return np.zeros(0), np.zeros(0)
        return verified(*(self.tokens[k] for k in ("lane", "time", "accepted")))

    def _running(self) -> dict[int, Running]:
        """The figures as they stood at each moment."""
        said = self.tokens["accepted"] > 0
        times, likely = self.tokens["time"], self.tokens["logprob"]
        begun = float(times[0]) if len(times) else 0.0
        found = {
            0: counting(times[said]),
            1: Running(
                times[said],
                _rates(times[said], begun),
                said="on average" if self.closed else "now",
                empty=True,
            ),
            2: mean(times[said], likely[said]),
        }
        when, came = self._passes()
        if len(when):
            found[2] = mean(when, came)
        if self.refused:
            share = np.cumsum(~said) / np.arange(1, len(said) + 1)
            found[3] = Running(times, share, "%", AT_END, empty=True)
        return found

    def _figures(self) -> list[list[str]]:
        count = len(self.tokens) - self.refused
        first = float(self.tokens["time"][0]) if len(self.tokens) else 0.0
        said = self.tokens["time"][self.tokens["accepted"] > 0] if not self.closed else ()
        late = max(first, self.now - LATELY)
        told = count if self.closed else len(said) - int(np.searchsorted(said, late))
        took = self.now - (first if self.closed else late)
        rate = told / took if took > 0 else float("nan")
        mean = figure(-self.surprise / count if count else float("nan"))
        figures = [
            ["tokens", f"{count:,}"],
            ["tokens per second", f"{rate:,.0f}" if rate >= 1000 else figure(rate)],
            ["mean log-probability", mean.replace("-", "−")],
        ]
        _, came = self._passes()
        if len(came):  # at most four figures, and of drafts it matters more
            figures[2] = ["tokens a verification", figure(float(came.mean()))]
        if self.refused:
            figures.append(["drafts refused", figure(self.refused / len(self.tokens), "%")])
        return figures


def _rates(times: np.ndarray, begun: float) -> np.ndarray:
    """Tokens a second at each of `times`, over the seconds lately or since `begun`."""
    since = np.maximum(times - LATELY, begun)
    count = np.arange(1.0, len(times) + 1) - np.searchsorted(times, since)
    took = times - since
    return np.divide(count, took, out=np.full(len(times), np.nan), where=took > 0)
