"""A small study whose run is counted ticks: what the workbench's own tests run."""

from typing import Literal

from engine.core.clock import VirtualClock, WallClock
from engine.core.config import Config, knob
from engine.core.events import Branch, Level, Span, Token
from workbench.study import Claim, Outcome, Study


class Ticks(Config):
    """How often it ticks and how long a tick takes."""

    count: int = knob(5, "Ticks", low=1, high=1_000_000)
    wait: float = knob(0.0, "Real seconds between ticks", low=0.0, high=1.0, unit="s")
    order: Literal["up", "down"] = knob("up", "Which way it counts")


def tick(config, live):
    clock = WallClock() if config.wait else VirtualClock()
    live.open(config, clock)
    live.emit(Branch(0.0, "r0", state="queued"))
    live.emit(Branch(0.0, "r0", state="running"))
    for number in range(config.count):
        live.poll(clock.now())
        begun = clock.now()
        clock.wait_until(begun + (config.wait or 0.001))
        live.emit(Token(clock.now(), "r0", str(number), -0.5))
        live.emit(Span(clock.now(), "engine", "step", begun, tag="decode=1 prefill=0"))
        value = number if config.order == "up" else config.count - number
        live.emit(Level(clock.now(), "engine", "running", value))
        live.report("ticks", number + 1, config.count)
    live.emit(Branch(clock.now(), "r0", state="finished"))


def rises(config, run, fast):
    values = [level.value for level in run(config).of(Level)]
    return Outcome("each tick above the last", str(values[:3]), values == sorted(values))


TOY = Study(
    slug="flover",
    driver=tick,
    config=Ticks(),
    views=("levels",),
    claims=(
        Claim("rises", "It rises.", "Figure 1: it rises", "exact", rises, broken={"order": "down"}),
    ),
    about="It counts.",
    tries=(("many", {"count": 50}), ("few", {"count": 2}), ("down", {"order": "down"})),
    limits="It only counts.",
    presets={"down": {"order": "down"}},
)
