"""What every method of solving keeps to: attempts end, seeds decide, kills free pages."""

from collections import Counter

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Blob, Branch, Level, Mark, Opened, Page, Token, Told
from engine.core.log import Log
from engine.core.run import Live, Run
from engine.reasoning.fork_join import fork_join
from engine.reasoning.paths import parallel_paths
from engine.reasoning.pruning import pruning
from engine.reasoning.solving.method import Result
from engine.reasoning.solving.scores import Scores, scores_of
from engine.reasoning.spawning import spawning

PROBLEMS = 3
METHODS = {
    "paths": (parallel_paths.run, parallel_paths.PathsConfig(), {"width": 3, "budget": 24}),
    "spawning": (spawning.run, spawning.SpawningConfig(), {"children": 4, "window": 96}),
    "pruning": (
        pruning.run, pruning.PruningConfig(), {"traces": 4, "longest": 60, "judge": "shared_prefix"}
    ),
    "fork and join": (fork_join.run, fork_join.ForkJoinConfig(), {"segment": 60}),
}  # fmt: skip
THREADS = [name for name in METHODS if name != "fork and join"]
ENDED = {"finished", "pruned", "aborted", "joined"}


class Person(Live):
    """Says one thing once the run has told of so many tokens."""

    def __init__(self, command, after):
        super().__init__(Log())
        self.command, self.after = command, after

    def poll(self, now):
        if self.command and sum(1 for _ in self.log.of(Token)) >= self.after:
            self.inbox.append(self.command)
            self.command = None
        return super().poll(now)


def solved(name: str, person: Person | None = None, **changes) -> Log:
    driver, config, small = METHODS[name]
    config = update(config, {**small, "problems": PROBLEMS, **changes})
    if person is None:
        return Run.execute(driver, config).log
    driver(config, person)
    return person.log


def told(log: Log) -> list[str]:
    """Every event without its times."""
    return [
        repr([getattr(event, name) for name in event.__struct_fields__[1:] if name != "start"])
        for event in log
        if not isinstance(event, Opened | Blob)
    ]


def held(log: Log) -> Counter:
    """How often each owner still holds each page in the end."""
    holds: Counter = Counter()
    for event in log.of(Page):
        if event.state in ("take", "hit", "share", "copy"):
            holds[event.owner, event.page] += 1
        elif event.state == "drop":
            holds[event.owner, event.page] -= 1
    return +holds


@pytest.fixture(scope="module", params=METHODS)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def log(name) -> Log:
    return solved(name)


def test_every_attempt_ends_and_is_told_once(log):
    done = [e.value for e in log.of(Level) if (e.lane, e.name) == ("problems", "done")]
    assert done == [1, 2, 3]
    for what in ("answer", "verdict"):
        marks = [mark for mark in log.of(Mark) if mark.name == what]
        assert len({mark.lane for mark in marks}) == len(marks) == PROBLEMS
    ends = {branch.thread: branch.state for branch in log.of(Branch)}
    assert set(ends.values()) <= ENDED and len(ends) >= PROBLEMS
    assert not held(log)


def test_scores_are_those_that_were_told(log):
    scores = scores_of(log)
    assert all(len(column) == PROBLEMS for column in scores.values())
    verdicts = [mark.text.startswith("right") for mark in log.of(Mark) if mark.name == "verdict"]
    assert scores["right"].sum() == sum(verdicts)
    spent = [e.value for e in log.of(Level) if (e.lane, e.name) == ("problems", "tokens")]
    assert sorted(scores["tokens"]) == sorted(spent)
    assert scores["tokens"].sum() == sum(1 for _ in log.of(Token))


def test_the_same_seed_gives_the_same_log_and_another_does_not(name, log):
    assert told(solved(name)) == told(log)
    if name != "fork and join":  # which takes the likeliest token
        assert told(solved(name, seed=1)) != told(log)


def test_one_problem_at_a_time_gives_the_same_scores(name, log):
    knob = "at_once" if name == "fork and join" else "together"
    alone = scores_of(solved(name, **{knob: 1}))
    for column in ("right", "tokens"):
        assert alone[column].tolist() == scores_of(log)[column].tolist()


def test_whoever_is_killed_frees_pages_and_the_others_go_on(name, log):
    first = next(event.thread for event in log.of(Token))
    command = {"abort": first} if name == "fork and join" else {"kill": first}
    killed = solved(name, Person(command, 12))
    ends = {branch.thread: branch.state for branch in killed.of(Branch)}
    assert ends[first] in ("pruned", "aborted")
    assert len(scores_of(killed)["right"]) == PROBLEMS
    assert not held(killed)


@pytest.mark.parametrize("name", THREADS)
def test_a_persons_words_are_put_into_a_threads_mouth(name):
    said = solved(name, Person({"say": [_root(name), "1"]}, 6), problems=1)
    (mark,) = [mark for mark in said.of(Mark) if mark.name == "say"]
    assert mark.lane == _root(name) and len(list(said.of(Told))) == 1
    assert told(said) != told(solved(name, problems=1))
    assert len(scores_of(said)["right"]) == 1


@pytest.mark.parametrize("name", THREADS)
def test_what_cannot_be_done_is_refused_in_words_and_nobody_stops(name):
    log = solved(name, Person({"dance": "p0"}, 3), problems=1)
    refused = [mark for mark in log.of(Mark) if mark.name == "refuse" and mark.lane == "problems"]
    assert any("command {'dance'" in mark.text for mark in refused)
    assert len(scores_of(log)["right"]) == 1


def _root(name: str) -> str:
    return next(iter(METHODS[name][1].asked())).name


def test_a_column_that_is_not_there_is_refused_with_those_that_are():
    scores = Scores()
    scores.take(4, Result("a", True, figures={"tokens": 3, "each": [1, 2]}))
    scores.take(2, Result("", False, figures={"tokens": 5, "each": [7]}))
    assert scores.column("tokens").tolist() == [5, 3]
    assert scores.column("each").tolist() == [[7, -1], [1, 2]]
    with pytest.raises(BadInput, match="no column 'token'"):
        scores.column("token")
