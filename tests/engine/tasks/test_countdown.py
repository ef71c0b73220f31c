"""Countdown: the checker accepts exactly what replays to the target; the solver misses nothing."""

from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tasks.countdown.task import Countdown, after, legal_steps, problem, solutions, solve


def brute_force(numbers, target):
    """Whether any order of numbers, operations and brackets reaches the target; an own search."""
    if len(numbers) == 1:
        return numbers[0] == target
    for a, b, *rest in permutations(numbers):
        for value in (a + b, a - b, a * b, a / b if b else -1):
            if value >= 0 and value == int(value) and brute_force([int(value), *rest], target):
                return True
    return False


@given(st.lists(st.integers(1, 9), min_size=2, max_size=3), st.integers(0, 60))
def test_the_solver_is_complete(numbers, target):
    assert (solve(numbers, target) is not None) == brute_force(numbers, target)


@given(st.integers(0, 10_000))
def test_every_solution_passes_and_a_changed_digit_does_not(seed):
    asked = Countdown(numbers=3).problem("train", seed)
    for steps in solutions(asked.numbers, asked.target):
        text = "\n".join(map(str, steps))
        assert asked.check(text).right, (asked, text)
        wrong = "\n".join([*map(str, steps[:-1]), str(steps[-1])[:-1] + "x"])
        assert not asked.check(wrong).right


def test_every_text_of_a_small_alphabet_is_judged_as_arithmetic_says():
    asked = problem((2, 3), 6, ())
    right = {
        "".join(text)
        for size in range(1, 6)
        for text in product("236*+=", repeat=size)
        if asked.check("".join(text)).right
    }
    assert right == {"2*3", "3*2", "2*3=6", "3*2=6"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3+5=8\n8*7=56\n56-2=54", "reaches 54 instead of 24"),
        ("3+5=9\n9*7=63\n63-2=61", "is not so"),
        ("3+3=6\n6*7=42\n42-2=40", "which is not there"),
        ("7*5=35\n35-3=32", "every number exactly once"),
        ("2-7=0", "below zero"),
        ("7/2=3", "not a whole number"),
        ("(3+5", "open parenthesis"),
        ("3+5)", "stray"),
        ("__import__('os')", "not an expression"),
        ("3+", "ends too early"),
        ("(" * 600, "too long"),
    ],
)
def test_a_wrong_answer_says_why(text, reason):
    verdict = problem((3, 5, 7, 2), 24, ()).check(text)
    assert not verdict.right
    assert reason in verdict.reason


@pytest.mark.parametrize(
    "text", ["7*5=35\n35-3=32\n32-2=30", "7*5-3-2", "(7*5)-3-2=30", "5*7-(3+2)"]
)
def test_steps_and_expressions_are_both_answers(text):
    assert problem((3, 5, 7, 2), 30, ()).check(text).right


def test_votes_count_an_answer_once_however_it_is_written():
    asked = problem((3, 5, 7, 2), 30, ())
    assert asked.check("5*7-3-2").answer == asked.check("7*5=35\n35-3=32\n32-2=30").answer
    assert asked.check("7*5-2-3").answer != asked.check("7*5-3-2").answer


def test_a_step_takes_its_operands_away():
    steps = {str(step): step for step in legal_steps((4, 2, 4))}
    assert after((4, 2, 4), steps["4/4=1"]) == (2, 1)
    assert "4-2=2" in steps and "2-4=-2" not in steps
    with pytest.raises(ValueError):
        after((1, 2), steps["4/4=1"])
