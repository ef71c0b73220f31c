"""What a system costs may only fall: a policy and a study, or a reason why it takes more."""

import pytest

from tests.architecture.graph import graph
from tests.architecture.prices import (
    Price,
    listed,
    lowered,
    prices,
    table,
)

LOWER = "python -m tests.architecture.prices --lower"


@pytest.fixture(scope="module")
def found() -> list[Price]:
    return prices(graph())


def test_lowering_never_raises(found):
    dearer = [Price(p.slug, (*p.modules, "engine.more"), p.lines + 1000, p.own) for p in found]
    text = lowered(dearer)
    for slug, row in listed().items():
        assert f"[{slug}]\nfiles = {row['files']}\nlines = {row['lines']}\n" in text


def test_the_table_names_every_study_and_the_median(found):
    told = table(found)
    assert all(price.slug in told for price in found)
    assert "median" in told
