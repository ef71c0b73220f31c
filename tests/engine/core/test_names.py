"""Mistyped names: the nearest are offered, long lists are not."""

import pytest

from engine.core.names import nearest, suggest

KNOBS = ["model", "pages", "page_size", "workload", "workload.count", "workload.rate"]
MANY = [f"device-{number}" for number in range(40)]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("modle", "model"),
        ("Model", "model"),
        ("page", "pages"),
        ("workload.cuont", "workload.count"),
        ("count", "workload.count"),
        ("load.rate", "workload.rate"),
        ("load", "workload"),
        (".pages", "pages"),
    ],
)
def test_the_nearest_name_comes_first(name, first):
    assert nearest(name, KNOBS)[0] == first


def test_a_right_parent_does_not_make_its_other_knobs_near():
    assert nearest("workload.cuont", KNOBS) == ["workload.count"]
    assert nearest("workload.zzz", KNOBS) == []


@pytest.mark.parametrize("name", ["", "zzz", "\n", "a" * 100_000, "../../etc"])
def test_nothing_is_near_to_nonsense(name):
    assert nearest(name, KNOBS) == []


def test_few_names_are_listed_and_many_are_not():
    assert suggest("pags", ["pages", "model"]) == "did you mean pages? (one of: pages, model)"
    assert suggest("zzz", ["pages", "model"]) == "one of: pages, model"
    assert suggest("pags", ["pages"]) == "did you mean pages?"
    assert suggest("x", []) == "there are none"
    long = suggest("zzz", MANY)
    assert long.startswith("among 40: device-0, ") and "device-39" not in long
    near = suggest("device-39x", MANY)
    assert near.startswith("did you mean device-39") and len(near) < 60
