"""The cache view's frame from short lists of events made by hand."""

import numpy as np
import pytest

from engine.core.events import Blob, Branch, Level, Mark, Opened, Page, Span, Token
from engine.core.log import Log
from tests.widgets.made_runs import serving
from tests.widgets.views.page_map.test_pool import same
from widgets.canvas.packing import pack
from widgets.fold import History
from widgets.views.page_map import PageMap
from widgets.views.page_map.detail import reduce
from widgets.views.page_map.prefix import MOST_LEAVES, PrefixTree

FACTS = {"pages": 8, "page_size": 4, "host_pages": 2, "bytes_per_page": 1024}


def folded(*events) -> dict:
    fold = PageMap()
    fold.add(Opened(0.0, {}, facts=FACTS))
    for event in events:
        fold.add(event)
    return fold.frame()


def step(time: float) -> Span:
    return Span(time, "engine", "step", time - 0.1, tag="decode=1 prefill=0")


def admitted(owner: str = "r0", time: float = 0.05) -> list:
    """A prompt of six tokens in two pages, prefilled in the first step, which samples a token."""
    return [
        Branch(time, owner, state="running"),
        Page(time, 0, owner, "take", 0),
        Page(time, 1, owner, "take", 4),
        Span(0.1, owner, "prefill", 0.0, tag="0:6"),
        step(0.1),
        Token(0.1, owner, "a"),
    ]


def figures(frame: dict) -> dict[str, str]:
    return dict(frame["figures"])


def test_an_empty_log_says_what_to_do():
    assert "Start a run" in PageMap().frame()["empty"]
    assert not folded()["empty"]


def test_a_page_is_filled_as_far_as_its_owner_has_come():
    assert folded(*admitted())["fill"][:2].tolist() == [4, 2]
    more = [step(0.2), Token(0.2, "r0", "b"), step(0.3), Token(0.3, "r0", "c")]
    assert folded(*admitted(), *more)["fill"][:2].tolist() == [4, 4]


def test_a_text_with_masks_fills_its_pages_at_once_and_tokens_in_them_add_nothing():
    text = [event for event in admitted() if not isinstance(event, Span | Token)]
    text += [Span(0.1, "r0", "unmask", 0.0, tag="0:6"), Token(0.1, "r0", "1:a "), step(0.1)]
    again = [Span(0.2, "r0", "unmask", 0.1, tag="0:6"), Token(0.2, "r0", "0:b "), step(0.2)]
    for shown in (folded(*text), folded(*text, *again)):
        assert shown["fill"][:2].tolist() == [4, 2] and not figures(shown).get(
            "hit rate", ""
        ).strip("–")


def test_a_frame_that_is_over_keeps_what_others_see_of_it():
    events = [Page(0.1, 0, "frame 3", "take", 4), Span(0.2, "frame 3", "denoise", 0.1, tag="4:8")]
    over = [step(0.2), Branch(0.2, "frame 3", "game", "finished")]
    assert folded(*events, *over)["fill"].tolist() == [4, *[0] * 7]


def test_fragmentation_is_the_share_of_held_positions_that_hold_nothing():
    assert figures(folded(*admitted()))["fragmentation"] == "25 %"


def test_pages_written_in_a_step_glow_until_the_next_one():
    assert np.flatnonzero(folded(*admitted())["glow"]).tolist() == [0, 1]
    frame = folded(*admitted(), step(0.2), Token(0.2, "r0", "b"))
    assert np.flatnonzero(frame["glow"]).tolist() == [1]


def test_a_shared_page_counts_its_holders_and_saves_bytes():
    frame = folded(*admitted(), Page(0.2, 0, "r1", "share"), Page(0.2, 0, "r2", "share"))
    assert frame["refs"][0] == 3
    assert figures(frame)["saved by sharing"] == "2 KiB"
    assert frame["owners"][frame["owner"][0]] == "r0", "the hue stays while its owner does"


def test_the_hit_rate_is_tokens_found_over_prompt_tokens():
    indexed = [Page(0.2, 0, "r0", "index", 0, 4)]
    found = [
        Page(0.2, 0, "r1", "hit", 0),
        Mark(0.2, "cache", "lookup", "request r1 hit 4 of 10 tokens"),
        Page(0.2, 2, "r1", "take", 4),
        Page(0.2, 3, "r1", "take", 8),
        Span(0.3, "r1", "prefill", 0.2, tag="4:10"),
    ]
    frame = folded(*admitted(), *indexed, *found)
    assert figures(frame)["hit rate"] == "25 %"  # 4 of 6 + 10
    lookup = frame["lookup"]
    assert (lookup["owner"], lookup["hit"], lookup["miss"]) == ("r1", 4, 6)
    assert frame["path"].tolist() == [0] and "hit 4 of 10" in lookup["text"]


def test_a_lookup_that_found_nothing_belongs_to_the_one_who_takes_pages_next():
    miss = [Mark(0.2, "cache", "lookup", "request r1 hit 0 of 3 tokens")]
    frame = folded(*admitted(), *miss, Page(0.2, 5, "r1", "take"),
                   Span(0.3, "r9", "prefill", 0.2, tag="0:50"),
                   Span(0.3, "r1", "prefill", 0.2, tag="0:3"))  # fmt: skip
    assert frame["lookup"]["owner"] == "r1" and frame["path"].tolist() == []
    assert (frame["lookup"]["hit"], frame["lookup"]["miss"]) == (0, 3)


def test_a_cached_page_ages_and_says_why_it_was_evicted():
    left = [Page(0.2, 0, "r0", "index", 0, 4), Page(0.2, 0, "r0", "drop")]
    ages = [step(0.3 + i / 10) for i in range(5)]
    frame = folded(*admitted(), *left, *ages)
    assert frame["state"][0] == 2 and frame["age"][0] >= 4 and frame["fill"][0] == 4
    gone = folded(*admitted(), *left, *ages, Page(0.9, 0, "", "free", why="least recently used"))
    assert gone["acts"][gone["act"][0]] == "evicted" and gone["state"][0] == 0
    assert gone["whys"][gone["why"][0]] == "least recently used"


def test_decisions_are_sentences_newest_first_and_lookups_are_none():
    frame = folded(
        Mark(0.1, "cache", "evict", "evicted page 4: 3 steps idle"),
        Mark(0.2, "cache", "lookup", "hit 3"),
        Mark(0.3, "scheduler", "preempt", "request 17 preempted: 6 pages short"),
    )
    told = [text for _, _, text in frame["decisions"]]
    assert told == ["request 17 preempted: 6 pages short", "evicted page 4: 3 steps idle"]


def test_a_fork_starts_with_its_parents_length():
    shared = [Page(0.2, 0, "r0.1", "share", 0), Page(0.2, 1, "r0.1", "share", 4)]
    gone = [
        Page(0.3, 0, "r0", "drop"),
        Page(0.3, 1, "r0", "drop"),
        Branch(0.3, "r0", "", "finished"),
    ]
    frame = folded(*admitted(), Branch(0.15, "r0.1", "r0", "queued"), *shared, *gone)
    assert frame["fill"][:2].tolist() == [4, 2]


def test_a_request_that_ends_on_the_host_leaves_its_host_pages():
    out = Page(0.2, 0, "r0", "swap_out", 0, 4, parent=1)
    frame = folded(*admitted(), out)
    assert frame["owners"][frame["host_owner"][1]] == "r0"
    assert frame["state"][0] == 0
    ended = folded(*admitted(), out, Branch(0.3, "r0", state="aborted"))
    assert ended["host_owner"][1] == 65535


def test_counts_agree_with_the_levels_the_engine_tells():
    log = serving(1, pages=128, requests=30, arrive=0.8)
    fold, told = PageMap(), {}
    for event in log:
        fold.add(event)
        if isinstance(event, Level):
            told[event.name] = event.value
            if event.name == "tokens_step":  # the last of a step
                used, cached, free, host = fold._counts()
                assert (used, cached, free) == tuple(
                    told[f"pages_{n}"] for n in ("used", "cached", "free")
                )
                assert host == told["pages_host"]


def test_attention_comes_from_the_logs_blobs_and_sums_over_what_is_not_chosen():
    log = Log([Opened(0.0, {}, facts=FACTS), Blob(0.1, "attention_mass", "m", [2, 3, 8])])
    log.blobs["m"] = np.arange(48, dtype=np.float32).reshape(2, 3, 8)
    frame = History(log, PageMap()).latest().frame()
    everything = reduce(frame, {})
    assert (everything["layers"], everything["heads"]) == (2, 3)
    assert everything["mass"].argmax() == 7 and everything["mass"].max() == 255
    one = reduce(frame, {"layer": 0, "head": 0})["mass"]
    np.testing.assert_array_equal(one, (np.sqrt(np.arange(8) / 7) * 255).astype(np.uint8))
    assert "mass" not in folded()


def test_a_sample_of_pages_alone_has_nothing_to_choose():
    frame = reduce({"mass": np.array([0.0, 1.0, np.nan])}, {"layer": 3, "head": 1})
    assert frame["mass"].tolist() == [0, 255, 0] and (frame["layers"], frame["heads"]) == (1, 1)


def test_a_wide_tree_is_gathered_into_blocks_that_fit():
    tree = PrefixTree()
    for page in range(3000):
        tree.index(page, -1)
    for page in range(3000, 3100):
        tree.index(page, 0 if page == 3000 else page - 1)
    refs = np.zeros(3100, np.int32)
    refs[2500] = 4
    blocks = tree.blocks(refs, 16)
    assert len(blocks["tree_x"]) <= 2 * MOST_LEAVES
    assert sorted(blocks["tree_pages"].tolist()) == list(range(3100))
    assert blocks["tree_gathered"].sum() == 3000 - MOST_LEAVES + 1
    used = int(np.flatnonzero(blocks["tree_refs"])[0])
    assert not blocks["tree_gathered"][used], "what is in use is drawn by itself"
    assert blocks["tree_height"].max() < 0.1, "and is not crowded out"


@pytest.mark.parametrize("pages", [96, 256])
def test_scrubbing_a_run_back_equals_a_fresh_fold(pages, monkeypatch):
    monkeypatch.setattr("widgets.fold.KEEP_EVERY", 200)
    log = serving(1, pages=pages, requests=20, arrive=0.8)
    history = History(log, PageMap())
    history.latest().frame()
    for share in (0.8, 0.3, 0.6, 0.1):
        fresh = PageMap()
        fresh.blobs = log.blobs
        for event in log:
            if event.time <= log.duration * share:
                fresh.add(event)
        same(history.at(log.duration * share).frame(), fresh.frame())


def test_a_frame_is_a_picture_that_later_events_do_not_change():
    log = serving(2, requests=10)
    history = History(log, PageMap())
    frame = history.at(log.duration / 3).frame()
    before = pack(reduce(frame, {}))
    history.latest().frame()
    assert pack(reduce(frame, {})) == before


def test_nothing_new_gives_the_very_same_frame():
    history = History(serving(2, requests=4), PageMap())
    assert history.latest().frame() is history.latest().frame()


def test_where_one_leaf_has_room_two_branches_are_gathered_into_it():
    tree = PrefixTree()
    for page in range(600):  # each begins a path of its own, which forks at its end
        tree.index(3 * page, -1)
        tree.index(3 * page + 1, 3 * page)
        tree.index(3 * page + 2, 3 * page)
    blocks = tree.blocks(np.zeros(1800, np.int64), 16)
    assert sorted(blocks["tree_pages"].tolist()) == list(range(1800))
    assert blocks["tree_gathered"].max() > 2 and 2 in blocks["tree_gathered"]
