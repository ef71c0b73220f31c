"""Lines of how far a training is: now and then, in steps and seconds, one gone on with, too."""

from engine.core.events import Level, Span
from workbench.trainings.how_far import EVERY, HowFar


def lines(tags: list[str], steps: int, each: float) -> list[str]:
    """What is told of spans that end `each` seconds apart."""
    now, told = [0.0], list[str]()
    hear = HowFar("training a", steps, told.append, lambda: now[0])
    for tag in tags:
        now[0] += each
        hear(Level(now[0], "training", "loss", 1.0))
        hear(Span(now[0], "training", "steps", now[0] - each, tag=tag))
    return told


def test_a_line_now_and_then_says_how_many_seconds_are_left():
    tags = [f"{n * 100}:{n * 100 + 100}" for n in range(10)]
    assert lines(tags, 1000, EVERY / 2) == [
        f"training a: {done} of 1,000 steps, about {(1000 - done) / 100 * EVERY / 2:.0f} s left"
        for done in (200, 400, 600, 800)
    ]


def test_steps_of_a_checkpoint_took_none_of_this_calls_seconds():
    told = lines(["500:600", "600:700"], 1000, 20.0)
    assert told == ["training a: 700 of 1,000 steps, about 60 s left"]


def test_a_second_loop_goes_on_counting():
    told = lines(["0:150", "150:300", "0:50"], 400, 20.0)
    counts = ["training a: 300 of 400", "training a: 350 of 400"]
    assert [line.split(" steps")[0] for line in told] == counts
