"""The catalogue's search beyond its cards: words in knobs, views and help lead there; words that
nobody says lead to the nearest family and to the doors."""

import pytest

pytestmark = pytest.mark.ui
ELSEWHERE = "Also in knobs, views and help"


def typed(page, word):
    """What was found for the last letter, too, stands there: with each letter the lists are drawn
    anew and move, and a press on a link that goes between its down and its up is none."""
    page.locator("li mark").get_by_text(word, exact=True).first.wait_for()


def test_words_of_a_knob_and_of_a_view_lead_there_and_unknown_ones_to_a_family(visit):
    seen = visit(width=1280, height=800)
    page = seen.open("/catalogue")
    words = page.get_by_label("Search")
    # What no system's card says stands elsewhere: in how views are read.
    words.press_sequentially("p50, p90")
    page.get_by_role("heading", name=ELSEWHERE).wait_for()
    view = page.locator("li", has_text="How long do requests wait").get_by_role("link").first
    assert "view=latency" in view.get_attribute("href")
    # What nobody says leads to the nearest family, and to the doors.
    words.fill("")
    words.press_sequentially("speculatve decodng")
    page.get_by_text("No system has these words").wait_for()
    for door in ("a model", "a trace", "a cluster", "a claim"):  # one of each, once all is typed
        page.get_by_role("link", name=door, exact=True).wait_for()
    page.get_by_role("link", name="decoding", exact=True).click()
    page.wait_for_url("**/catalogue?family=decoding**")
    page.get_by_text("Mirror Speculative Decoding", exact=True).wait_for()
    # A knob's words lead to it: its fold is open, it has the focus and says what it is.
    words.press_sequentially("replica that is slow")
    typed(page, "slow")
    page.locator("li", has_text="Straggler").get_by_role("link", name="POLCA").click()
    page.wait_for_url("**/study?slug=polca&knob=faults.straggler**")
    page.get_by_text("Replica that is slow; -1: none", exact=True).wait_for()
    knob = page.get_by_role("slider", name="Straggler", exact=True)
    assert knob.evaluate("e => e.getRootNode().activeElement === e")
    assert seen.faults == []


def test_a_view_that_is_named_in_the_address_is_scrolled_to(visit):
    seen = visit(width=1280, height=800)
    page = seen.open("/study?slug=flover&executor=modelled&model=llama-2-7b&at=100%25&view=latency")
    title = page.get_by_text("How long do requests wait, and how long for the slowest?")
    title.wait_for()
    page.wait_for_function("e => e.getBoundingClientRect().y < 300", arg=title.element_handle())
    assert seen.faults == []
