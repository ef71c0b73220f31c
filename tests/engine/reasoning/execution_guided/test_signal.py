"""Signals: what a prompt says of candidates that were run."""

from random import Random

import pytest

from engine.reasoning.execution_guided.signal import MARKS, Tried, signal, values_after
from engine.recipes.from_examples.list_programs import RECIPE
from engine.recipes.program_examples import candidate, outcome, text
from engine.tasks.list_programs import Line, ListPrograms
from engine.tasks.sandbox.interpreter import Outcome, run


def test_a_signal_has_the_values_now_and_each_candidates_lines_with_theirs():
    tried = [
        Tried(
            ("x = sorted(x)", "x = x[3]"),
            (Outcome([[2, 1], [1, 2]], "IndexError"), Outcome([[], []], "IndexError")),
        ),
        Tried(("x = x[",), (Outcome([[2, 1]], "SyntaxError"), Outcome([[]], "SyntaxError"))),
    ]
    now = [Outcome([[2, 1]], ""), Outcome([[]], "")]
    assert signal(now, tried, 1, [[1, 2], [3]]) == (
        "#0 21 -\n"
        "#1 x = sorted(x) 12= -\n"
        "#1 x = x[3] IndexError IndexError\n"
        "#2 x = x[ SyntaxError SyntaxError\n"
    )


def test_code_that_is_right_or_has_stopped_is_told_so():
    now = [Outcome([[9], [1, 2]], ""), Outcome([[9]], "TypeError")]
    assert signal(now, [], 2, [[1, 2], [9]]) == "#0 12= TypeError\n"


def test_where_one_example_is_stopped_the_others_go_on():
    outcomes = [Outcome([[1]], "IndexError"), Outcome([[1, 2], [2, 1]], "")]
    assert values_after(outcomes, 0) == "1 12"
    assert values_after(outcomes, 1) == "IndexError 21"
    assert values_after([outcomes[0], Outcome([[1]], "")], 2) == ""


def test_values_of_other_kinds_are_told_and_cut():
    outcomes = [Outcome([1234567890123], ""), Outcome([[12, -3]], "")]
    assert values_after(outcomes, 0) == "1234567890 [12,-3]"


@pytest.mark.parametrize("number", range(12))
def test_what_a_model_is_taught_of_candidates_is_what_the_sandbox_would_say(number):
    problem, chance = ListPrograms().problem("train", number), Random(number)
    for before in range(len(problem.lines) + 1):
        written = problem.lines[:before]
        tried = candidate(problem, written, problem.lines[before:], chance)
        program = text(written) + "\n".join(tried.lines)
        assert list(tried.outcomes) == [run(program, start) for start, _ in problem.shown]


def test_what_stops_a_line_is_taught_too():
    lines = (Line("x = [9 - v for v in x]", 0), Line("x = [x[v] for v in x]", 0))
    for start in ([1, 2, 3, 4], [9, 8, 7, 6]):
        assert outcome(lines, start) == run(text(lines), start)
    assert outcome(lines, [1, 2, 3, 4]).error == "IndexError"


def test_half_of_the_examples_have_a_signal_and_learn_what_candidates_come_to():
    tokenizer = RECIPE.tokenizer()
    shown = [RECIPE.example(tokenizer, "train", number) for number in range(40)]
    texts = [tokenizer.decode(e.tokens_T.tolist(), skip_special_tokens=False) for e in shown]
    assert [MARKS[0] in text for text in texts] == [number % 2 == 1 for number in range(40)]
    weights = {weight for e in shown for weight in e.weight_L.round(2).tolist()}
    assert len(weights) == 2 and max(weights) == 1.0
