"""Every task: its own answer passes, splits share no problem, seeds decide, no text raises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.config import kinds, update
from engine.core.errors import BadInput
from engine.tasks.arithmetic import Arithmetic
from engine.tasks.graph_search import GraphSearch, neighbours, shortest_path
from engine.tasks.list_operations import ListOperations
from engine.tasks.task import Task, side

TASKS = [task() for task in kinds(Task).values()]
SMALL = [  # so small that the same problems come up again and again
    Arithmetic(left=1, right=1),
    ListOperations(length=2, operations=1),
    GraphSearch(nodes=4, edges=2),
    update(kinds(Task)["countdown"](), {"numbers": 2, "largest": 4}),
]


def test_tasks_are_found_by_file_name():
    assert set(kinds(Task)) >= {"arithmetic", "countdown", "graph_search", "list_operations"}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_problem_accepts_its_own_answer_and_no_other_ones(task, split):
    problems = [task.problem(split, seed) for seed in range(40)]
    for one, other in zip(problems, problems[1:], strict=False):
        assert one.check(one.answer).right, one
        assert not one.check("").right
        assert not one.check(one.answer + "0").right
        if one.answer != other.answer:
            assert not one.check(other.answer).right or task.kind == "countdown"


@pytest.mark.parametrize("task", [*TASKS, *SMALL], ids=lambda task: task.kind)
def test_no_problem_is_on_both_sides(task):
    keys = {s: {task.problem(s, seed).key for seed in range(200)} for s in ("train", "test")}
    assert keys["train"] and keys["test"]
    assert not keys["train"] & keys["test"]
    assert all(side(task.problem("test", seed)) == "test" for seed in range(20))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_a_seed_is_a_problem(task):
    assert task.problem("test", 7) == task.problem("test", 7)
    assert len({task.problem("train", seed).key for seed in range(30)}) > 20


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
@given(text=st.text(max_size=40) | st.text("0123456789+-*/()=>, \nab", max_size=40))
def test_no_text_makes_a_check_raise(task, text):
    verdict = task.problem("test", 1).check(text)
    assert verdict.reason


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_problems_of_a_set_differ(task):
    keys = [problem.key for problem in task.problems("test", 50)]
    assert len(set(keys)) == 50


def test_problems_run_out_with_a_word():
    with pytest.raises(BadInput, match="different test problems"):
        list(Arithmetic(left=1, right=1).problems("test", 60))


def test_written_the_other_way_round_it_is_the_same_problem():
    problems = [Arithmetic(left=1, right=1).problem("train", seed) for seed in range(300)]
    texts = {problem.prompt: problem.key for problem in problems}
    pairs = [(f"{b}*{a}=", f"{a}*{b}=") for a in range(10) for b in range(a)]
    both = [(texts[one], texts[two]) for one, two in pairs if one in texts and two in texts]
    assert both and all(one == two for one, two in both)


def test_the_examples_in_the_docstrings():
    lists = ListOperations(length=3, operations=2)
    problem = lists.problem("train", 0)
    assert problem.check(problem.answer.replace(" ", ",")).reason == "is not a list of digits"
    edges = [("a", "b"), ("c", "d"), ("b", "d")]
    assert shortest_path(edges, "a", "c") == ("a", "b", "d", "c")
    assert shortest_path(edges, "a", "e") is None
    assert neighbours(edges)["d"] == ["c", "b"]


def test_a_graph_accepts_any_shortest_path_and_no_detour():
    for seed in range(300):
        problem = GraphSearch(nodes=5, edges=6).problem("test", seed)
        if problem.length != 2:
            continue
        near = neighbours(problem.edges)
        middles = [n for n in near[problem.source] if n in near[problem.goal]]
        assert all(problem.check(f"{problem.source}>{n}>{problem.goal}").right for n in middles)
        source, goal = problem.source, problem.goal
        back_and_forth = f"{source}>{middles[0]}>{source}>{middles[0]}>{goal}"
        assert "edges, not 2" in problem.check(back_and_forth).reason
        assert not problem.check("none").right
