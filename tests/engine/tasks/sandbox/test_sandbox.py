"""Programs run in the isolated process: what comes back, and what costs too much."""

import pytest

from engine.core.limits import changed
from engine.tasks.list_programs import ListProgram, ListPrograms
from engine.tasks.sandbox.interpreter import Outcome, run
from engine.tasks.sandbox.sandbox import OVER, Sandbox, sandbox


@pytest.fixture(scope="module")
def box():
    made = Sandbox()
    yield made
    made.close()


def test_what_comes_back_is_what_the_interpreter_says(box):
    starts = [[3, 1, 4, 1], [9, 9], []]
    for program in ("x = sorted(x)\nx = x[1:]", "x = x[3]", "x = x[", "", "import os"):
        assert box.run(program, starts) == [run(program, start) for start in starts]
    assert box.runs == 15


def test_what_isolates_it_here_is_known(box):
    assert box.layers and set(box.layers) <= {"limits", "namespaces", "calls"}


def test_a_program_over_its_time_is_an_outcome_and_the_next_runs(box):
    slow = "y = range(60)\n" + "\n".join(f"z{n} = [v * v for v in y]" for n in range(150))
    with changed(program_seconds=1e-6):
        assert box.run(slow, [[1]] * 50) == [Outcome([], OVER)] * 50
    assert box.run("x = x[::-1]", [[1, 2]]) == [Outcome([[2, 1]], "")]


@pytest.mark.parametrize(
    "program", ["(" * 3_000, "x = " + "[" * 3_000, "x = " + "x[" * 1_000, "\0", "\ud800", "x = 1\r"]
)
def test_texts_that_are_hard_to_read_end_in_an_outcome(box, program):
    (outcome,) = box.run(program, [[1, 2]])
    assert outcome.error or outcome.values
    assert box.run("x = x[::-1]", [[1, 2]]) == [Outcome([[2, 1]], "")]


def test_a_closed_one_says_so_as_an_outcome():
    made = Sandbox()
    made.close()
    assert made.run("x = x", [[1]]) == [Outcome([], OVER)]


def test_the_process_has_one_sandbox():
    assert sandbox() is sandbox()


def test_a_problem_is_judged_by_examples_that_are_not_shown_too():
    problems = ListPrograms(least=1, most=1).problems("train", 400)
    problem = next(one for one in problems if "sorted" in one.answer)
    assert isinstance(problem, ListProgram)
    assert problem.check(problem.answer).right
    assert problem.passes(problem.outcomes(problem.answer))
    assert problem.check("x = x[7]").reason == "ends with IndexError"
    assert problem.check("x = x[::-1]").reason == "fails an example of those shown"
