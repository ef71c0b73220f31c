"""Waits of thinking while reading, from the log of a run: in tokens, in passes and in seconds."""

from dataclasses import dataclass

from engine.core.events import Mark, Span, Token
from engine.core.log import Log

ROUNDING = 1e-9  # s: a pass that ends as the last token arrives has not read it


@dataclass(frozen=True, slots=True)
class Wait:
    """Of one problem. `onset`: tokens of the input that came before its first thought.

    `onset_s`, `answer_s`: from the input's last arrival to the first thought and to the answer
    (negative before); `answer_passes`: forward passes that ended after that arrival, the one with
    the answer included; `chain`: tokens thought after the input was whole.
    """

    onset: int
    read: int
    onset_s: float
    answer_s: float
    answer_passes: int
    chain: int
    right: bool


def waits(log: Log) -> list[Wait]:
    """The waits of every problem of a run."""
    assert log.opened is not None
    whole = log.opened.facts["whole_s"]
    passes = [span.time for span in log.of(Span) if span.name == "step"]
    times: dict[str, list[float]] = {}
    for token in log.of(Token):
        times.setdefault(token.thread, []).append(token.time)
    verdicts = {mark.lane: mark.text for mark in log.of(Mark) if mark.name == "verdict"}
    found = []
    for place, arrival in enumerate(whole):
        name = str(place) if len(whole) > 1 else ""
        read, think = times[f"read{name}"], times[f"think{name}"]
        found.append(
            Wait(
                onset=sum(time <= think[0] for time in read),
                read=len(read),
                onset_s=think[0] - arrival,
                answer_s=think[-1] - arrival,
                answer_passes=sum(arrival + ROUNDING < time <= think[-1] for time in passes),
                chain=sum(time > arrival + ROUNDING for time in think),
                right=verdicts[f"think{name}"] == "right",
            )
        )
    return found
