"""Who is handed to the engine between two steps, and how many leave it."""

import numpy as np

from engine.inference.requests.request import Request, Sampling
from workbench.live.line import AT_ONCE, Leaving, Line
from workbench.live.ticket import Ticket


def tickets(*answers: int) -> list[Ticket]:
    prompt = np.ones(1, np.int32)
    return [Ticket(Request(prompt, Sampling(n=n)), lambda piece: None, 0, "") for n in answers]


def line_of(made: list[Ticket]) -> Line:
    line = Line()
    for ticket in made:
        line.append(ticket)
    return line


def test_a_few_come_at_once_and_in_order():
    made = tickets(1, 64, 1)
    line = line_of(made)
    assert line.come() == made and not line and line.come() == []


def test_of_many_answers_some_come_in_a_step_and_whoever_asks_for_one_is_not_behind_them():
    made = tickets(*[64] * 64, 1)
    line = line_of(made)
    came = line.come()
    assert came[:2] == [made[0], made[-1]], "who came first is always let in"
    assert sum(one.request.sampling.n for one in came) <= AT_ONCE + 64
    steps = [came]
    while line:
        steps.append(line.come())
    assert sorted(map(id, sum(steps, []))) == sorted(map(id, made)), "and nobody twice"
    assert len(steps) == 64 * 64 // AT_ONCE


def test_who_has_gone_is_not_handed_in():
    made = tickets(1, 1)
    line = line_of(made)
    assert line.withdraw(made[0]) and not line.withdraw(made[0])
    assert line.come() == made[1:]


def test_a_thousand_leave_in_a_few_steps():
    leaving = Leaving()
    leaving.extend(tickets(*[1] * 1024))
    assert [len(list(leaving.go())) for _ in range(5)] == [AT_ONCE] * 4 + [0]
