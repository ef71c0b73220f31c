"""Words are found in knobs, views and help texts, with the systems where they stand; what nobody
says leads to a family."""

import pytest

from workbench.catalogue import catalogue, families
from workbench.search.found_elsewhere import elsewhere, nothing
from workbench.search.word_index import Place, found, nearest_family, places

MADE = (
    Place("knob", "Chunk, tokens", "batching.chunk", "Tokens in a step <b>.", ("flover",)),
    Place("knob", "Pages", "pages", "How many; a chunk takes several.", ("flover", "batchllm")),
    Place("view", "Who waits?", "levels", "Chunks over time.", ("flover", "batchllm", "nexus")),
)


def test_a_name_comes_before_a_mention_and_more_systems_before_fewer():
    assert [place.at for place in found("chunk", MADE)] == ["batching.chunk", "levels", "pages"]
    assert [place.at for place in found("chunk several", MADE)] == ["pages"]
    assert found("hunk", MADE) == [] == found("  ", MADE)  # words begin words


def test_every_built_system_and_its_views_and_knobs_are_in_it():
    kinds = {kind: [p for p in places() if p.kind == kind] for kind in ("knob", "view", "about")}
    built = [entry.slug for entry in catalogue() if entry.built]
    assert sorted(slug for place in kinds["about"] for slug in place.systems) == sorted(built)
    assert all(place.words.strip() for place in kinds["view"])
    (lanes,) = (place for place in kinds["view"] if place.at == "request_lanes")
    assert "flover" in lanes.systems and "preempted" in lanes.words
    assert any(p.at == "faults.straggler" and "dualmap" in p.systems for p in kinds["knob"])


def test_a_result_says_where_its_words_stand_and_links_there():
    text = elsewhere("replica that is slow", dark=True)
    assert "<b>Straggler</b>" in text and "<mark>Replica</mark>" in text
    assert "slug=polca&amp;knob=faults.straggler&amp;theme=dark" in text
    assert elsewhere("no such words <img>", dark=False) == ""


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("speculatve decodng", "decoding"),
        ("quantisation", "precision"),
        ("allreduce", "communication"),
    ],
)
def test_what_nobody_says_leads_to_the_nearest_family_and_to_the_doors(text, family):
    assert nearest_family(text) == family
    said = nothing(text, dark=False)
    assert f'family={family}">' in said and said.count("<a ") == 5


def test_without_a_nearest_family_all_are_offered():
    assert nearest_family("qqqq") == ""
    assert all(f">{family}</a>" in nothing("qqqq <b>", dark=False) for family in families())
