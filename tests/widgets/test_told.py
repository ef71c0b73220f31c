"""What a browser may say to a drawing, a bar or a run: JSON of any kind and order stops none."""

import random
import sys

import pytest
from traitlets import TraitError

from engine.core.config import update
from engine.core.log import Log
from engine.core.run import COMMAND, INBOX, Live, Run
from engine.inference.config import InferenceConfig
from engine.inference.run import run
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.run import think
from tests.contracts.test_views import fold as folded
from tests.engine.reasoning.loaded_models import loaded
from tests.widgets.made_runs import serving
from tests.widgets.views.threads.made import family
from widgets.canvas import told
from widgets.canvas.drawing import CanvasDrawing
from widgets.stage.transport import Cursor, Transport
from widgets.view import View, views

ODD = (None, True, False, 0, 1, -1, 3, 0.5, -7.5, 1e300, -1e300, 10**400, float("nan"),
       float("inf"),
       "", "x", "place", "step", "../x", "x" * 5000, [], [1], [[]], {}, {"a": 1}, {"start": 0},
       "\ud800")  # fmt: skip
NAMES = ("start", "stop", "first", "last", "axis", "reading", "until", "critical", "static",
         "layer", "head", "page", "pixels", "x", "", "__class__")  # fmt: skip
WORDS = ("fork", "kill", "prune", "join", "say", "abort", "prompt", "tokens", "sampling", "reset",
         "do", "turn", "self", "time", "speed", "by", "x")  # fmt: skip


def drawn(draw: random.Random, names: tuple[str, ...], most: int) -> dict:
    """An object with some of the names, or one whose numbers are all sound."""
    picked = draw.sample(names, draw.randint(0, most))
    if draw.random() < 0.3:
        return {name: draw.choice((-3, 0, 0.25, 1, 2, 40, 1e9)) for name in picked}
    return {name: draw.choice(ODD) for name in picked}


@pytest.fixture(scope="module")
def logs() -> list[Log]:
    return [serving(requests=12), family()]


@pytest.fixture
def small(monkeypatch):
    """Every view sends few marks, so that its window counts."""
    for name, module in list(sys.modules.items()):
        if name.startswith("widgets.") and name.endswith((".detail", ".memory", ".plots")):
            for most in (n for n in vars(module) if n.startswith("MOST") and "STATIC" not in n):
                monkeypatch.setattr(module, most, 6)


@pytest.mark.parametrize("view", views().values(), ids=lambda v: v.name)
def test_no_window_keeps_a_view_from_drawing(view: View, logs, small, full):
    draw = random.Random(view.name)
    for log in logs:
        drawing, fold = view.draw(), folded(view, log)
        for event in log:
            fold.add(event)
        host = drawing.widget()
        for _ in range(400 if full else 40):
            name = draw.choice(("window", "window", "window", "seek", "chosen", "command"))
            said = drawn(draw, NAMES, 9) if draw.random() < 0.9 else draw.choice(ODD)
            if name in ("seek", "chosen") and draw.random() < 0.9:
                said = draw.choice(ODD)
            try:
                host.set_state({name: said})
            except (TraitError, OverflowError):  # the library's own line: of another kind
                continue
            drawing.show(fold.frame(), 0.5)


def test_a_window_keeps_what_our_scripts_send():
    whole = {"start": 0.5, "stop": 2, "first": 0, "last": 9, "axis": "step", "reading": -1,
             "until": 1.5, "critical": True, "layer": 1, "pixels": 700}  # fmt: skip
    assert told.window(whole) == whole
    assert told.window({"pixels": 100, "start": 0, "stop": 1}) == {
        "pixels": 100,
        "start": 0,
        "stop": 1,
    }
    assert told.window({"start": 0, "layer": 2}) == {"layer": 2}
    assert told.window({**whole, "static": True}) == whole  # a server sends the few that are seen
    assert told.window({str(n): n for n in range(99)}) == {} == told.window([1])


def test_a_bar_takes_no_moment_that_is_none():
    cursor = Cursor(duration=4.0)
    transport = Transport(cursor, lambda: (0.0, 1.0, 2.0))
    draw = random.Random(5)
    for _ in range(300):
        does = draw.choice(
            ("seek", "step", "speed", "toggle", "follow", "unpin", "stop", "x", [], None)
        )
        transport.told({"do": does, draw.choice(("time", "by", "speed")): draw.choice(ODD)})
        assert 0 <= cursor.now <= 4 and 1e-6 <= cursor.speed <= 1e6


def commands(seed: int, count: int) -> list[dict]:
    draw = random.Random(seed)
    names = ("r0", "r1", "alice", "bob", "alice.1", "t0", "nobody")
    made = []
    for _ in range(count):
        one = drawn(draw, WORDS, 2)
        for word in one:
            kind = draw.random()
            if kind < 0.4:
                one[word] = draw.choice(names)
            elif kind < 0.6:
                one[word] = [draw.choice((*names, *ODD)) for _ in range(draw.randint(0, 3))]
        made.append(one)
    return made


def test_no_command_stops_a_serving_run(full):
    changes = {"executor": "modelled", "workload.count": 12, "workload.longest": 40}
    for seed in range(20 if full else 3):
        run_ = Run.start(run, update(InferenceConfig(), changes), paused=True)
        for command in commands(seed, 60):
            run_.tell(**command)
        run_.resume()
        run_.wait(60)
        assert run_.log.closed.reason == "finished"


def test_no_command_stops_threads(full):
    for seed in range(20 if full else 2):
        config = update(ReasoningConfig(), {"workers": 3, "budget": 12, "requests": seed % 2})
        log = Log()
        live = Live(log)
        live.inbox.extend(commands(seed, 60))
        think(config, loaded(config, words=True), live)
        assert all(len(event.name) < 1000 for event in log if hasattr(event, "name"))


def test_too_many_commands_and_too_large_ones_are_left_out():
    run_ = Run(Log(), None, Live(Log()))
    run_.tell(say=["alice", "x" * COMMAND])
    run_.tell(tokens=[[0] * 400] * 400)
    assert not run_.live.inbox
    for number in range(2 * INBOX):
        run_.tell(fork="r", turn=number, self=1)
    assert len(run_.live.inbox) == INBOX


def test_a_drawing_hears_an_owner_and_a_moment_or_nothing():
    drawing, owners, moments = CanvasDrawing("threads"), [], []
    drawing.on_choose(owners.append)
    drawing.on_seek(moments.append)
    for value in ODD:
        drawing._heard("seek", value)
        drawing._heard("chosen", value)
    assert moments == [0.0, 1.0, 3.0, 0.5] and all(len(name) <= told.TEXT for name in owners)
