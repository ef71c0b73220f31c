"""The stage: what it shows equals a plain fold, whatever the cursor, the log or the run."""

import numpy as np
import pytest

from engine.core.clock import VirtualClock
from engine.core.config import Config
from engine.core.events import Branch, Level, Opened, Span
from engine.core.log import Log
from engine.core.run import Run
from tests.widgets.made_runs import serving
from widgets.fold import Fold
from widgets.stage.feed import Feed
from widgets.stage.stage import Stage
from widgets.view import View
from widgets.views.levels.fold import LevelsFold


class Seen(Fold):
    """Remembers every event, so that nothing folded twice or left out goes unseen."""

    def __init__(self):
        self.events = []

    def add(self, event):
        self.events.append(event)

    def frame(self):
        return {"events": list(self.events)}

    def copy(self):
        other = Seen()
        other.events = self.events[:]
        return other


class Drawn:
    """A drawing that only remembers."""

    def __init__(self):
        self.shown, self.chosen, self.is_dark = [], [], None

    def show(self, frame, cursor):
        self.shown.append((frame["events"], cursor))

    def choose(self, owner):
        self.chosen.append(owner)

    def on_choose(self, tell):
        self.tell = tell

    def on_seek(self, tell):
        self.seek = tell

    def dark(self, on):
        self.is_dark = on

    def __panel__(self):
        return None


STATE = View("state", "What is now?", Seen, Drawn)
WHOLE = View("whole", "What was ever?", Seen, Drawn, whole=True)


def stage(run, *views, tracks=1):
    made = Stage([], tracks=tracks)
    made.views = list(views)
    for track in made.tracks:
        track.feeds = [Feed(view) for view in views]
    made._notes = {feed: next(iter(Stage(["levels"])._notes.values())) for feed in made.feeds}
    for feed in made.feeds:
        made._listen(feed)
    if run is not None:
        made.open(run)
    return made


def settle(made):
    for _ in range(1000):
        if made.tick():
            return made.feeds
    raise AssertionError("the stage never settled")


@pytest.fixture(scope="module")
def run():
    return Run(serving(requests=12))


@pytest.mark.parametrize("seed", range(5))
def test_a_scrub_anywhere_shows_what_a_plain_fold_would(run, seed):
    made = stage(run, STATE, WHOLE)
    dice = np.random.default_rng(seed)
    for time in [*dice.uniform(0, run.log.duration, 12), run.log.duration, 0.0]:
        made.cursor.seek(float(time))
        state, whole = settle(made)
        expected = [event for event in run.log if event.time <= made.cursor.now]
        assert state.drawing.shown[-1] == (expected, made.cursor.now)
        assert whole.drawing.shown[-1] == (run.log.events, made.cursor.now)


def test_a_long_log_is_folded_in_slices_that_never_exceed_the_budget_by_much(monkeypatch):
    log = Log([Level(i * 1e-6, "engine", "running", 1.0) for i in range(50_000)])
    monkeypatch.setattr("widgets.stage.stage.BUDGET", 0.0)
    made = stage(Run(log), STATE)
    folded = []
    while not made.tick():
        folded.append(made.feeds[0].folded)
        assert len(folded) < 1000
    steps = np.diff([0, *folded])
    assert len(folded) > 20 and steps.max() <= 512
    assert made.feeds[0].drawing.shown[-1][0] == log.events


def test_what_did_not_change_is_not_drawn_again(run):
    made = stage(run, STATE)
    settle(made)
    count = len(made.feeds[0].drawing.shown)
    for _ in range(5):
        made.tick()
    assert len(made.feeds[0].drawing.shown) == count


def test_a_whole_view_keeps_its_frame_while_the_cursor_moves(run):
    frames = []

    class Kept(Drawn):
        def show(self, frame, cursor):
            frames.append(frame)

    made = stage(run, View("kept", "?", Seen, Kept, whole=True))
    settle(made)
    for time in (0.1, 0.3, 0.2):
        made.cursor.seek(time)
        settle(made)
    assert len({id(frame) for frame in frames}) == 1 and len(frames) == 4


def test_another_run_takes_the_place_of_the_first_in_the_same_drawing(run):
    made = stage(run, STATE, WHOLE)
    drawings = [feed.drawing for feed in settle(made)]
    other = Run(serving(seed=5, requests=4))
    made.open(other)
    settle(made)
    assert [feed.drawing for feed in made.feeds] == drawings
    assert all(drawing.shown[-1][0] == other.log.events for drawing in drawings)
    assert made.cursor.duration == other.log.duration


def test_a_run_that_is_replayed_shows_itself_in_every_view_and_not_in_the_topmost_alone(run):
    made = stage(run, STATE, STATE)
    settle(made)
    made._timer = object()  # as on a page, whose browser sees both
    made.open(Run(serving(seed=5, requests=4)))
    made.cursor.seek(0.0)
    assert len(made._due()) == 1, "the topmost first"
    made.cursor.play()
    assert made._due() == made.feeds


def growing(log, upto):
    return Run(Log(log.events[:upto]))


@pytest.mark.parametrize("replayed", [False, True])
def test_the_next_run_is_seen_at_its_end_unless_a_person_put_the_cursor_elsewhere(run, replayed):
    made, other = stage(run, STATE), Run(serving(seed=5, requests=4))
    settle(made)
    if replayed:  # by the page itself, from the start
        made.cursor.play()
        made.tick()
        assert not made.cursor.follow
    made.open(Run(Log([])))
    made.tick()
    made.open(other)
    settle(made)
    assert made.cursor.now == made.cursor.time == other.log.duration
    assert made.feeds[0].drawing.shown[-1][0] == other.log.events


def test_where_a_person_put_the_cursor_it_stays_in_the_next_run_as_a_share_of_it(run):
    made, other = stage(run, STATE), serving(seed=5, requests=4)
    settle(made)
    made.cursor.seek(run.log.duration / 4)
    half = growing(other, len(other) // 2)
    made.open(half)
    made.tick()
    assert made.cursor.now == pytest.approx(half.log.duration / 4)
    for event in other.events[len(other) // 2 :]:
        half.log.emit(event)
    settle(made)
    assert made.cursor.now == pytest.approx(other.duration / 4)
    made.transport.told({"do": "follow"})
    made.open(Run(other))
    settle(made)
    assert made.cursor.now == other.duration, "a person has let it go"


def test_a_live_run_is_followed_until_a_person_scrubs_and_again_when_told(run):
    log = Log(run.log.events[:200])
    made = stage(Run(log), STATE)
    made.tick()
    assert made.feeds[0].drawing.shown[-1][0] == log.events
    made.cursor.seek(log.duration / 2)
    made.tick()
    for event in run.log.events[200:]:
        log.emit(event)
    settle(made)
    shown, at = made.feeds[0].drawing.shown[-1]
    assert shown == [e for e in log if e.time <= at] and len(shown) < 200
    made.transport.told({"do": "follow"})
    settle(made)
    assert made.feeds[0].drawing.shown[-1][0] == log.events


def test_what_watches_looks_first_in_a_tick_and_no_more_often_than_it_asked(run, monkeypatch):
    made, looked, now = Stage(["levels"]), [], [100.0]
    monkeypatch.setattr("widgets.stage.stage.perf_counter", lambda: now[0])

    def opens():
        if made.tracks[0].run is None:
            made.open(run)

    made.watch(opens)
    made.watch(lambda: looked.append(made.tracks[0].run), 0.025)
    for at in (100.0, 100.02, 100.03, 100.04, 100.06):
        now[0] = at
        made.tick()
    assert looked == [run] * 3, "at 100, 100.03 and 100.06, after what watched before"


def test_a_choice_in_one_view_lights_up_in_all(run):
    made = stage(run, STATE, WHOLE)
    made.feeds[0].drawing.tell("r3")
    assert [feed.drawing.chosen for feed in made.feeds] == [["r3"], ["r3"]]
    made.feeds[1].drawing.tell("r3")
    assert [feed.drawing.chosen for feed in made.feeds] == [["r3"], ["r3"]]
    made.feeds[1].drawing.seek(0.2)
    assert made.cursor.now == 0.2
    made.dark(True)
    assert all(feed.drawing.is_dark for feed in made.feeds) and made.transport.bar.is_dark


def test_a_view_that_fails_says_so_and_the_others_go_on(run):
    class Broken(Seen):
        def add(self, event):
            if isinstance(event, Branch):
                raise KeyError("no such <request>")

    made = stage(run, View("broken", "?", Broken, Drawn), STATE)
    broken, fine = settle(made)
    assert "KeyError" in broken.failure and not broken.drawing.shown
    assert "&lt;request&gt;" in made._notes[broken].object
    assert fine.drawing.shown[-1][0] == run.log.events
    made.open(Run(Log([Opened(0.0, {})])))
    settle(made)
    assert broken.failure == ""


def test_a_run_that_has_just_begun_is_not_drawn_before_it_had_its_chance():
    def driver(config, live):
        live.open(config, VirtualClock())
        live.emit(Span(1.0, "engine", "step", 0.0))

    made = stage(None, STATE)
    running = Run.start(driver, Config())
    running.wait()
    made.open(running)
    settle(made)
    assert [len(events) for events, _ in made.feeds[0].drawing.shown] == [3]
    assert list(made.tracks[0].steps.state.times) == [1.0]


def test_long_work_says_what_how_far_and_how_long_still():
    from engine.core.run import Live

    log = Log()
    live = Live(log)
    live.open(Config(), VirtualClock())
    live.report("Replaying", 10, 40)
    live.progress.since -= 5.0
    made = stage(Run(log, Config(), live), STATE)
    made.tick()
    assert made.transport.bar.work == {}
    made.tracks[0].opened -= 10
    made.tick()
    work = made.transport.bar.work
    assert work["what"] == "Replaying" and work["share"] == 0.25
    assert work["words"].startswith("10 of 40 · 15")


def test_the_real_levels_view_on_a_stage_equals_its_fold(run):
    made = Stage(["levels"])
    made.open(run)
    settle(made)
    fold = LevelsFold()
    for event in run.log:
        fold.add(event)
    np.testing.assert_equal(made.feeds[0]._frame, fold.frame())
