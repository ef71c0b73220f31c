"""The section of maps: each says what it draws, on which machine, and where it has no figure."""

import pytest

from workbench.catalogue import study
from workbench.pages.maps import Maps


@pytest.mark.parametrize(("slug", "bare"), [("flover", False), ("tokenring", True)])
def test_a_map_says_what_it_is_and_which_points_have_no_figure(slug, bare):
    chosen = study(slug)
    section = Maps(chosen, lambda: chosen.config)
    section.refresh()
    known = [card for card in section.cards if not card.drawing.empty]
    assert known and not any(card.picture.object for card in known)  # nobody is near them
    section.near.is_near = True
    section.refresh()
    assert all(card.picture.object for card in known)
    notes = [card.note.object for card in section.cards]
    assert any("recorded on" in note for note in notes)
    assert any("points have no figure" in note for note in notes) == bare
