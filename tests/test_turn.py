"""Tests that go by turns: each once in so many commits, and when a file of theirs has changed."""

from pathlib import Path

import pytest

from tests import turn
from tests.turn import ROOT, TURNS, due

pytest_plugins = ("pytester",)


def test_each_has_its_turn_once_in_so_many_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "changed", frozenset)
    for number in range(3 * TURNS):
        now = turn.turn_of_this_commit()
        assert sum(due(number, turn=now + later) for later in range(TURNS)) == 1
    assert sum(due(number) for number in range(TURNS)) == 1


def test_what_has_changed_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "changed", lambda: frozenset({ROOT / "a.py"}))
    assert all(due(number, ROOT / "b.py", ROOT / "a.py") for number in range(TURNS))
    assert sum(due(number, ROOT / "b.py") for number in range(TURNS)) == 1


def test_what_git_tells_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "ROOT", tmp_path)
    count, changed = turn.turn_of_this_commit.__wrapped__, turn.changed.__wrapped__
    assert (count(), changed()) == (0, frozenset())  # no repository
    turn._git("init", "-q")
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        turn._git("add", name)
        turn._git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", name)
        if name == "a":  # no commit before it
            (tmp_path / "a").write_text("anew")
            assert (count(), changed()) == (1, {tmp_path / "a"})
            turn._git("checkout", "-q", "a")
    (tmp_path / "a").write_text("otherwise")
    (tmp_path / "c").touch()
    assert count() == 2
    assert changed() == {tmp_path / "a", tmp_path / "b", tmp_path / "c"}


def test_what_has_changed_in_a_folder_of_a_larger_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "ROOT", tmp_path)
    turn._git("init", "-q")
    within = tmp_path / "within"
    within.mkdir()
    (within / "a").touch()
    turn._git("add", "within/a")
    turn._git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "a")
    (within / "a").write_text("otherwise")
    monkeypatch.setattr(turn, "ROOT", within)
    assert turn.changed.__wrapped__() == {within / "a"}


def test_a_marked_test_waits_but_with_full(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("from tests.conftest import *")
    pytester.makepyfile(
        "import pytest\nfrom tests.turn import TURNS\n"
        "@pytest.mark.parametrize('n', [pytest.param(n, marks=pytest.mark.turns(n)) "
        "for n in range(TURNS)])\n"
        "def test_it(n):\n    pass\n"
    )
    words = ("-n", "0", "-p", "no:cacheprovider", "-o", "markers=turns: x")
    pytester.runpytest_inprocess(*words).assert_outcomes(passed=1, skipped=TURNS - 1)
    pytester.runpytest_inprocess(*words, "--full").assert_outcomes(passed=TURNS)
