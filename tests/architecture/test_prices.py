"""What a system costs may only fall: a policy and a study, or a reason why it takes more."""

from statistics import median

import pytest

from tests.architecture.graph import graph
from tests.architecture.prices import (
    FILES,
    HALF_FILES,
    HALF_LINES,
    LINES,
    STEP,
    Price,
    dear,
    listed,
    lowered,
    prices,
    table,
)

LOWER = "python -m tests.architecture.prices --lower"


@pytest.fixture(scope="module")
def found() -> list[Price]:
    return prices(graph())


def test_a_system_costs_little_or_says_why(found):
    """A study can cost more because another gave up what they shared: then it says so."""
    for price in found:
        row = listed().get(price.slug, {"files": FILES, "lines": LINES})
        cost = f"{price.slug} alone reaches {price.files} engine files of {price.lines} lines: "
        names = ", ".join(price.modules)
        assert price.files <= row["files"], cost + f"over {row['files']} files: {names}"
        assert price.lines <= row["lines"], cost + f"over {row['lines']} lines: {names}"


def test_the_list_falls_with_what_systems_cost(found):
    costs = {price.slug: price for price in found}
    for slug, row in listed().items():
        price = costs[slug]
        assert dear(price), f"{slug} costs no more than others: {LOWER}"
        assert row["files"] <= price.files + 1, f"{slug}: {price.files} files by now: {LOWER}"
        assert row["lines"] < price.lines + 2 * STEP, f"{slug}: {price.lines} lines by now: {LOWER}"
        assert len(row["reason"]) > 20


def test_half_of_the_systems_cost_little(found):
    files, lines = (median(getattr(price, of) for price in found) for of in ("files", "lines"))
    assert files <= HALF_FILES and lines <= HALF_LINES


def test_lowering_never_raises(found):
    dearer = [Price(p.slug, (*p.modules, "engine.more"), p.lines + 1000, p.own) for p in found]
    text = lowered(dearer)
    for slug, row in listed().items():
        assert f"[{slug}]\nfiles = {row['files']}\nlines = {row['lines']}\n" in text


def test_the_table_names_every_study_and_the_median(found):
    told = table(found)
    assert all(price.slug in told for price in found)
    assert "median" in told
