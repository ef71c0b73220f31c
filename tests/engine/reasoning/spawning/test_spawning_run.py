"""The driver of Countdown by threads, on the shipped model: verdicts, commands, budgets."""

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Branch, Level, Mark, Token, Told
from engine.core.log import Log
from engine.core.run import Live, Run
from engine.reasoning.spawning.spawning import SpawningConfig, run
from engine.tasks.countdown.search import even_problem


def solved(**changes) -> Log:
    small = {"problems": 6, "first": 40, "sampling.temperature": 0.0, "pages": 512}
    return Run.execute(run, update(SpawningConfig(), {**small, **changes})).log


def marks(log: Log, name: str) -> dict[str, str]:
    return {mark.lane: mark.text for mark in log.of(Mark) if mark.name == name}


def last(log: Log, name: str) -> float:
    return [e.value for e in log.of(Level) if e.lane == "problems" and e.name == name][-1]


def test_every_problem_gets_an_answer_and_a_verdict_that_the_task_agrees_with():
    log = solved()
    answers, verdicts = marks(log, "answer"), marks(log, "verdict")
    assert set(answers) == set(verdicts) == {f"p{n}" for n in range(40, 46)}
    for name, answer in answers.items():
        problem = even_problem("test", int(name[1:]))
        right = problem.check(answer.replace(" ", "\n")).right
        assert verdicts[name].startswith("right" if right else "wrong")
    rights = sum(verdict.startswith("right") for verdict in verdicts.values())
    assert last(log, "done") == 6
    assert last(log, "right") == rights >= 2
    spawned = {b.thread for b in log.of(Branch) if b.parent}
    assert len(spawned) > 12


def test_a_serial_search_has_one_thread_for_each_problem():
    log = solved(search="serial", problems=3, window=64)
    assert {branch.thread for branch in log.of(Branch)} == {"p40", "p41", "p42"}
    said = [sum(token.thread == name for token in log.of(Token)) for name in ("p40", "p41", "p42")]
    assert max(said) <= 64 - 8 + 1


def test_children_beyond_the_limit_are_refused_in_words():
    log = solved(children=1, problems=2)
    assert {b.thread for b in log.of(Branch) if b.parent} == {"p40.1", "p41.1"}
    assert any("that may have 1" in m.text for m in log.of(Mark) if m.name == "refuse")
    assert last(log, "done") == 2


def test_a_critical_path_is_kept_to():
    log = solved(critical=70, problems=3)
    assert max(e.value for e in log.of(Level) if e.name == "critical") <= 70


def test_fewer_threads_than_children_refuse_some_and_the_others_go_on():
    log = solved(threads=4, together=2, problems=2)
    assert any("at most 4 may" in m.text for m in log.of(Mark) if m.name == "refuse")
    assert last(log, "done") == 2


class Killing(Live):
    """A person who kills the first child once it has said three words, and asks for the absurd."""

    def poll(self, now):
        said = [e for e in self.log.events if isinstance(e, Token) and e.thread == "p40.1"]
        if len(said) == 3 and not any(isinstance(e, Told) for e in self.log.events):
            self.inbox += [{"kill": "p40.1"}, {"kill": "nobody"}, {"join": ["p40", "p40.1"]}]
        return super().poll(now)


def test_a_killed_child_ends_alone_and_what_cannot_be_done_is_told():
    config = update(SpawningConfig(), {"problems": 1, "first": 40, "sampling.temperature": 0.0})
    log = Log()
    run(config, Killing(log))
    ends = {b.thread: b.state for b in log.of(Branch)}
    assert ends.pop("p40.1") == "pruned"
    assert set(ends.values()) == {"finished"} and len(ends) > 2
    refused = [mark.text for mark in log.of(Mark) if mark.name == "refuse"]
    assert any("no such thread" in text for text in refused)
    assert any("join of p40: it waits for its children" in text for text in refused)
    assert len(list(log.of(Told))) == 3


def test_a_model_of_other_words_is_refused():
    with pytest.raises(BadInput, match="words; take a model"):
        solved(model="stdlib-draft-1m")
