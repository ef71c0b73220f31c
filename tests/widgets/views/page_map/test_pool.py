"""The cache view's pages against a cache kept as plainly as can be, over random legal events."""

from collections import Counter

import numpy as np
import pytest

from engine.core.events import Opened, Page
from engine.core.log import Log
from tests.widgets.views.page_map.truth import RandomCache
from widgets.fold import History
from widgets.views.page_map import PageMap
from widgets.views.page_map.pool import CACHED, FREE, USED


def check(frame: dict, truth: RandomCache) -> None:
    held, cached = truth.held, set(truth.cached())
    for page in range(truth.pages):
        wanted = USED if page in held else CACHED if page in cached else FREE
        assert frame["state"][page] == wanted, f"page {page}"
        assert frame["refs"][page] == len(held.get(page, ()))
        owner = frame["owner"][page]
        if page in held:
            assert frame["owners"][owner] in held[page]
        elif page not in cached:
            assert owner == 65535
    counts = Counter(frame["state"].tolist())
    assert counts[FREE] + counts[USED] + counts[CACHED] == truth.pages
    assert frame["used"][-1] == counts[USED] and frame["cached"][-1] == counts[CACHED]
    assert frame["free"][-1] == counts[FREE]
    assert rows(frame) == {o: r for o, r in [*truth.rows.items(), *host_rows(truth)] if r}
    taken = {h: o for o, row in truth.swapped.items() for h in row.values()}
    shown = {h: frame["owners"][o] for h, o in enumerate(frame["host_owner"]) if o != 65535}
    assert shown == taken and frame["host"][-1] == len(taken)


def rows(frame: dict) -> dict[str, dict[int, int]]:
    """owner -> start -> page, as the drawing reads it; and in logical order."""
    found = {}
    for i, owner in enumerate(frame["row_owner"]):
        cells = slice(frame["row_offset"][i], frame["row_offset"][i + 1])
        starts = frame["row_start"][cells].tolist()
        assert starts == sorted(starts)
        name = frame["owners"][owner]
        found[name] = dict(zip(starts, frame["row_page"][cells].tolist(), strict=True))
    return found


def host_rows(truth: RandomCache) -> list[tuple[str, dict[int, int]]]:
    return [(o, {s: -1 - h for s, h in row.items()}) for o, row in truth.swapped.items()]


def opened(truth: RandomCache) -> Opened:
    facts = {"pages": truth.pages, "page_size": truth.size, "host_pages": truth.host_pages}
    return Opened(0.0, {}, facts=facts)


@pytest.mark.parametrize("seed", range(12))
def test_pages_holders_and_counts_are_those_of_a_plain_cache(seed, full):
    truth, fold = RandomCache(seed), PageMap()
    fold.add(opened(truth))
    for _ in range(2000 if full else 150):
        for event in truth.step():
            fold.add(event)
        check(fold.frame(), truth)


@pytest.mark.parametrize("seed", range(4))
def test_references_saved_are_those_beyond_the_first_of_each_page(seed):
    truth, fold = RandomCache(seed), PageMap()
    fold.add(opened(truth))
    for _ in range(120):
        for event in truth.step():
            fold.add(event)
    assert fold.pool.extra == sum(len(owners) - 1 for owners in truth.held.values())


@pytest.mark.parametrize("seed", range(4))
def test_the_icicle_holds_every_indexed_page_once_under_its_parent(seed):
    truth, fold = RandomCache(seed), PageMap()
    fold.add(opened(truth))
    for _ in range(200):
        for event in truth.step():
            fold.add(event)
        frame = fold.frame()
        assert sorted(frame["tree_pages"].tolist()) == sorted(truth.parents)
        assert_nested(frame, truth)


def assert_nested(frame: dict, truth: RandomCache) -> None:
    ends = {}
    for i in range(len(frame["tree_x"])):
        chain = frame["tree_pages"][frame["tree_offset"][i] : frame["tree_offset"][i + 1]].tolist()
        assert frame["tree_width"][i] == len(chain) * truth.size
        for above, below in zip(chain, chain[1:], strict=False):
            assert truth.parents[below] == above
        first = truth.parents[chain[0]]
        x, top, bottom = ends.get(first, (0, 0.0, 1.0))
        assert frame["tree_x"][i] == x
        here = frame["tree_top"][i], frame["tree_top"][i] + frame["tree_height"][i]
        assert top - 1e-6 <= here[0] < here[1] <= bottom + 1e-6
        ends[chain[-1]] = (x + frame["tree_width"][i], *here)
    leaves = [p for p in truth.parents if p not in truth.parents.values()]
    if leaves:
        tips = [p for p in ends if p in leaves]
        assert np.isclose(sum(ends[p][2] - ends[p][1] for p in tips), 1, atol=1e-5)


def test_pages_beyond_what_the_header_says_are_shown_too():
    fold = PageMap()
    fold.add(Page(0.0, 300, "r1", "take"))
    frame = fold.frame()
    assert len(frame["state"]) > 300 and frame["state"][300] == USED


@pytest.mark.parametrize("seed", range(3))
def test_scrubbing_back_gives_the_same_frame_as_folding_afresh(seed, monkeypatch):
    monkeypatch.setattr("widgets.fold.KEEP_EVERY", 50)
    truth = RandomCache(seed)
    log = Log([opened(truth)])
    for _ in range(200):
        log.events += truth.step()
    history = History(log, PageMap())
    history.latest().frame()
    for share in (0.7, 0.2, 0.9, 0.05, 0.5, 0.0):
        time = log.duration * share
        fresh = PageMap()
        for event in log:
            if event.time <= time:
                fresh.add(event)
        same(history.at(time).frame(), fresh.frame())


def same(a: dict, b: dict) -> None:
    assert a.keys() == b.keys()
    for name, value in a.items():
        np.testing.assert_array_equal(value, b[name], err_msg=name)
