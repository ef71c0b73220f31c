"""Accounts of users stay few however many come, and go by the same rule."""

import sys

import numpy as np

from engine.inference import accounts
from engine.inference.accounts import KEPT, Accounts
from tests.engine.inference.small import engine, request

USERS = 100_000


def passing(held: Accounts, present: set[str], users: range) -> None:
    """Each of these users is there for one request of some tokens, beside whoever stays."""
    for number in users:
        name = f"u{number}"
        present.add(name)
        held.comes(name)
        slots = np.array([held.slot("heavy"), held.slot(name)])
        held.charge(slots, np.array([50, 1 + number % 7]))
        present.discard(name)


def test_a_hundred_thousand_users_leave_as_much_as_a_few_hundred_do(monkeypatch):
    monkeypatch.setattr(accounts, "KEPT", 64)
    present = {"heavy"}
    held = Accounts(lambda: present)
    held.comes("heavy")
    passing(held, present, range(3 * 64))
    kept = held.served, held.slots, held.names, held.free
    before = [sys.getsizeof(each) for each in kept]
    passing(held, present, range(3 * 64, USERS))
    assert [sys.getsizeof(each) for each in kept[:3]] == before[:3]
    assert all(len(each) <= 2 * 64 + 1 for each in kept)
    assert held.served["heavy"] == 50 * USERS, "who is there keeps its account"


def test_fairness_among_whoever_is_there_is_the_same_as_with_all_accounts_kept(monkeypatch):
    """Who of those there goes next, by all accounts and by few, while others come once each."""

    def order(kept: int) -> list[str]:
        monkeypatch.setattr(accounts, "KEPT", kept)
        draw, present, found = np.random.default_rng(3), set[str](), []
        held = Accounts(lambda: present)
        for turn in range(3000):
            present = {"a", "b", "c", f"u{turn}"}
            for name in sorted(present):
                held.comes(name)
            picked = min(sorted(present), key=held.served.__getitem__)
            found.append(picked)
            held.charge(np.array([held.slot(picked)]), np.array([int(draw.integers(1, 30))]))
        return found

    few = order(16)
    assert few == order(10_000)
    assert {"a", "b", "c"} < set(few)


def test_who_owes_keeps_the_debt_while_others_pass():
    present = set[str]()
    held = Accounts(lambda: present)
    held.comes("greedy")
    held.charge(np.array([held.slot("greedy")]), np.array([10_000]))
    passing(held, present, range(5 * KEPT))
    held.comes("greedy")
    held.comes("new")
    assert held.served["greedy"] == 10_000 > held.served["new"]


def test_an_engine_with_users_without_end_keeps_few_accounts(monkeypatch):
    monkeypatch.setattr(accounts, "KEPT", 4)
    held, _ = engine(ordering="fair_share", max_running=2, pages=100)
    for number in range(60):
        one = request(4, number, max_tokens=2)
        one.user = f"u{number}"
        held.add(one)
        held.run()
        assert one.over
    assert len(held.scheduler.accounts.served) <= 9
