"""The catalogue's cards: what a system that runs tells of itself, and where to go without one."""

from dataclasses import replace

from workbench.catalogue import catalogue
from workbench.pages.catalogue import built_card, listing

ROWS = [
    {"slug": "flover", "grade": "modelled", "finding": "weaker", "reported": None, "holds": True},
    {"slug": "hogwild", "grade": "exact", "finding": "weaker", "reported": None, "holds": True},
]


def test_a_card_tells_family_year_and_how_many_claims_of_which_grade():
    entry = replace(next(e for e in catalogue() if e.slug == "flover"), arxiv="2305.13484")
    card = built_card(entry, False, ROWS)
    assert f"<span>{entry.family}</span><span>2023</span>" in card
    assert "<span class='modelled'>1 claim modelled</span>" in card and "exact" not in card
    assert "<span>20" not in built_card(replace(entry, arxiv=""), False)


def test_words_that_nothing_has_lead_on():
    assert "start from what you have" in listing([], False)
