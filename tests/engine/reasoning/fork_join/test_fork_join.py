"""Forks and joins on our engine: what is sent, kills, small caches, modelled time."""

import numpy as np
import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Branch, Mark
from engine.core.run import Run
from engine.reasoning.fork_join.fork_join import ForkJoinConfig, run
from engine.reasoning.solving.scores import scores_of
from engine.tasks.part_sums import CLOSED, JOIN, forked
from widgets.fold import History
from widgets.view import views


def scores(**changes):
    log = Run.execute(run, ForkJoinConfig(**changes)).log
    return log, scores_of(log)


def prompts(log):
    lines = log.blobs["prompts"].tobytes().decode().split("\0")
    return dict(line.split("\1") for line in lines)


def test_it_sends_what_the_traces_say_it_should():
    config = ForkJoinConfig(problems=4)
    log, columns = scores(problems=4)
    sent = prompts(log)
    right = 0
    for n, problem in enumerate(config.task.problems("test", 4)):
        if columns["right"][n]:
            wanted = [read for read, _ in forked(problem)]
            mine = [
                text for name, text in sent.items() if name.split("-")[0].split(".")[0] == f"p{n}"
            ]
            assert sorted(mine) == sorted(wanted)
            right += 1
    assert right >= 2
    assert (columns["forks"] == 1).all()


def test_threads_have_parents_and_the_join_names_them():
    log, _ = scores(problems=1)
    queued = {b.thread: b.parent for b in log.of(Branch) if b.state == "queued"}
    assert queued == {"p0": "", **{f"p0.{n}": "p0" for n in range(1, 5)}, "p0-1": "p0"}
    (join,) = [mark for mark in log.of(Mark) if mark.name == "join"]
    assert (join.lane, join.text) == ("p0-1", "p0-1 reads p0.1, p0.2, p0.3, p0.4")


def test_serial_and_forked_count_the_same_work():
    _, serial = scores(problems=6, mode="serial")
    _, forked = scores(problems=6)
    assert (serial["tokens"] == serial["critical"]).all()
    assert forked["critical"].mean() < serial["critical"].mean() < forked["tokens"].mean()


def test_a_killed_thread_says_nothing_and_the_problem_goes_on():
    config = ForkJoinConfig(problems=1)
    killed = []

    def driver(config, live):
        emit = live.emit

        def watch(event):
            emit(event)
            if isinstance(event, Branch) and event.thread == "p0.2" and event.state == "queued":
                live.inbox.append({"abort": "p0.2"})
                killed.append(event)

        live.emit = watch
        run(config, live)

    log = Run.execute(driver, config).log
    assert killed
    (fault,) = [mark for mark in log.of(Mark) if mark.name == "fault"]
    assert fault.lane == "p0.2" and "aborted" in fault.text
    joined = prompts(log)["p0-1"]
    assert f"<Thread>2:{CLOSED}" in joined and joined.endswith(JOIN)


def test_a_cache_too_small_for_it_is_told_and_the_run_ends():
    log, columns = scores(problems=2, pages=4, page_size=4)
    faults = [mark.text for mark in log.of(Mark) if mark.name == "fault"]
    assert len(faults) == 2 and "rejected" in faults[0]
    assert not columns["right"].any()


def test_a_budget_is_kept():
    _, columns = scores(problems=4, critical=40)
    assert (columns["critical"] <= 40).all()
    with pytest.raises(BadInput, match="segment"):
        update(ForkJoinConfig(), {"segment": 0})


def test_modelled_seconds_are_fewer_forked():
    forked_P = scores(problems=3, timed_as="qwen3-8b")[0].blobs["modelled_seconds_P"]
    serial_P = scores(problems=3, timed_as="qwen3-8b", mode="serial")[0].blobs["modelled_seconds_P"]
    assert (forked_P < serial_P).all() and np.isfinite(serial_P).all()


def test_the_threads_view_marks_the_same_critical_path():
    log, columns = scores(problems=1)
    frame = History(log, views()["threads"].fold()).latest().frame()
    figures = dict(frame["figures"])
    assert int(figures["tokens"]) == columns["tokens"][0]
    assert int(figures["on the critical path"]) == columns["critical"][0]
