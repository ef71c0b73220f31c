"""Traces of Countdown searches: what is written, what is given, and which answers count."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tasks.countdown.search import (
    LARGEST,
    Search,
    distance,
    even_problem,
    moves,
    ordered,
    reaches,
    results,
)
from engine.tasks.countdown.traces import (
    EOS,
    FOUND,
    JOIN,
    NOTHING,
    SPAWN,
    WORDS,
    child_prompt,
    ids,
    judge,
    messages,
    parallel,
    returned,
    serial,
    steps,
    words_of,
)
from engine.tasks.task import side

PROBLEMS = [even_problem("train", seed) for seed in range(60)]
SEARCH = Search()


def own(context) -> list[str]:
    return [word for word, mine in zip(context.words, context.own, strict=True) if mine]


def replayed(numbers, answer: list[str]) -> int | None:
    """The number left after an answer's steps, by nothing of the project's own; None if unfit."""
    held = sorted(numbers)
    if not answer or len(answer) % 4:
        return None
    for at in range(0, len(answer), 4):
        a, sign, b, result = answer[at : at + 4]
        if sign not in ("+", "-", "*", "/") or not (a + b + result).isdigit():
            return None
        for operand in (int(a), int(b)):
            if operand not in held:
                return None
            held.remove(operand)
        if sign == "/" and (int(b) == 0 or int(a) % int(b)):
            return None
        value = int(eval(f"{a}{sign if sign != '/' else '//'}{b}"))  # digits and one sign
        if value != int(result) or value < 0:
            return None
        held.append(value)
    return held[0] if len(held) == 1 else None


def test_problems_keep_to_their_side_and_can_be_solved_within_the_table():
    for split in ("train", "test"):
        for problem in [even_problem(split, seed) for seed in range(20)]:
            assert side(problem) == split
            assert problem.check(problem.answer).right
            assert max(step.result for step in reaches(problem.numbers, problem.target)) <= LARGEST


def test_results_of_a_pair_are_those_the_table_holds():
    assert results(3, 12) == (15, 9, 36, 4)
    assert results(5, 5) == (10, None, 25, 1)
    assert results(40, 7) == (47, 33, None, None)


def test_moves_leave_different_numbers_and_come_nearest_first_without_noise():
    for problem in PROBLEMS[:20]:
        left = [tuple(sorted(move.numbers)) for move in moves(problem.numbers)]
        assert len(set(left)) == len(left)
        order = ordered(problem.numbers, problem.target, Random(0), noise=0.0)
        far = [distance(move.numbers, problem.target) for move in order]
        assert far == sorted(far)
        noisy = ordered(problem.numbers, problem.target, Random(0), noise=6.0)
        assert sorted(noisy) == sorted(order)


def test_a_serial_search_goes_on_until_it_is_right():
    for seed, problem in enumerate(PROBLEMS):
        context = serial(problem, Random(seed), SEARCH)
        assert judge(problem, own(context)).right
        assert context.own.index(True) == 8


def test_a_child_knows_the_target_and_its_message_alone():
    for seed, problem in enumerate(PROBLEMS):
        parent, *children = parallel(problem, Random(seed), SEARCH)
        asked = messages(own(parent))
        assert 1 <= len(asked) == len(children) <= SEARCH.children
        for message, child in zip(asked, children, strict=True):
            given = child.words[: child.own.index(True)]
            assert given == child_prompt(parent.words, message)
            assert given[1] == str(problem.target)
            assert all(word in message for word in given[3:-1])


def test_a_parent_reads_what_its_children_return_and_answers_with_it():
    right = 0
    for seed, problem in enumerate(PROBLEMS):
        parent, *children = parallel(problem, Random(seed), SEARCH)
        back = [word for child in children for word in returned(own(child))]
        at = parent.words.index(JOIN) + 1
        assert parent.words[at : at + len(back)] == back
        assert not any(parent.own[at : at + len(back)])
        found = any(judge(problem, own(child)).right for child in children)
        assert judge(problem, own(parent)).right == found == (FOUND in back)
        right += found
    assert 0 < right < len(PROBLEMS)


def test_every_word_has_a_token_of_its_own():
    assert len(set(WORDS)) == len(WORDS)
    for seed, problem in enumerate(PROBLEMS[:10]):
        for context in parallel(problem, Random(seed), SEARCH):
            assert words_of(ids(context.words)) == context.words


@pytest.mark.parametrize("place", range(12))
def test_an_answer_counts_exactly_if_it_replays_to_the_target(place):
    """Every answer with one word exchanged for each other word, against a replay of our own."""
    accepted, others = 0, 0
    for seed, problem in enumerate(PROBLEMS[:12]):
        answer = own(serial(problem, Random(seed), SEARCH))
        start = len(answer) - 1 - answer[::-1].index(FOUND) + 1
        for word in WORDS[11:]:
            changed = [*answer[start:]]
            changed[place] = word
            want = replayed(problem.numbers, changed[:-1]) == problem.target
            assert judge(problem, [FOUND, *changed]).right == want, changed
            accepted += want
            others += not want
    assert accepted >= 12 and others > 100


@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_no_words_make_the_reading_raise(words):
    judge(PROBLEMS[0], words)
    steps(words)
    assert returned(words)[0] in (NOTHING, FOUND)
    assert len(messages(words)) == words[: (words + [JOIN]).index(JOIN)].count(SPAWN)


def test_an_answer_without_an_end_is_none():
    answer = own(serial(PROBLEMS[0], Random(0), SEARCH))
    assert answer[-1] == EOS
    assert not judge(PROBLEMS[0], answer[:-1]).right
    assert returned(answer[:-1]) == [NOTHING]
