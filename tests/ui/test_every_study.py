"""Every study's page at every width: its first mark in sight, nothing beyond the edge, nothing in
the console, all of it reached by keys; and one of them turned by keys alone."""

from contextlib import nullcontext, suppress

import pytest
from playwright.sync_api import TimeoutError as TooLong

from tests.ui.keys import all_by_keys
from workbench.catalogue import catalogue

pytestmark = [pytest.mark.ui, pytest.mark.slow]
BUILT = [entry.slug for entry in catalogue() if entry.built]
MARK = 300  # pixels from the top, at 1280 by 800, within which a view's first mark stands
SIZES = ((1280, 800, "light"), (1920, 1080, "dark"), (900, 800, "light"))
SETTLE = 3_000  # milliseconds until fonts, wraps and what a run's first words say stand still
ENDS = 120_000  # milliseconds within which a page's run ends …
TRAINS = {"noloco": 60_000}  # … but those that train for long, which are stopped after so many
TABS = 80  # presses until everything above the views has had the focus

# What sticks out of the window: the page itself scrolls sideways.
BEYOND = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
# Words of what has the focus, through the shadows it stands in.
FOCUSED = """() => {
  let at = document.activeElement
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement
  return at?.textContent?.trim() || at?.getAttribute?.('aria-label') || ''
}"""


@pytest.mark.parametrize("slug", BUILT)
def test_a_study_is_seen_at_once_at_every_width(visit, slug):
    seen, said = visit(new=True, width=1280, height=800), []
    seen.page.on(
        "console", lambda line: said.append(line.text) if line.type == "error" else None
    )  # fmt: skip
    for width, height, theme in SIZES:
        seen.page.set_viewport_size({"width": width, "height": height})
        page = seen.open(f"/study?slug={slug}&theme={theme}")
        first = page.locator(".pw-body canvas").first
        first.wait_for()
        if width == 1280:
            page.wait_for_timeout(SETTLE)
            assert first.bounding_box()["y"] <= MARK
            stop = page.get_by_role("button", name="Stop the run")
            with suppress(TooLong) if slug in TRAINS else nullcontext():
                # The button comes and goes with a run.
                stop.wait_for(state="hidden", timeout=TRAINS.get(slug, ENDS))
            if stop.is_visible():
                stop.click()
                stop.wait_for(state="hidden")
            all_by_keys(page)
        assert page.evaluate(BEYOND) <= 0, f"at {width} pixels the page scrolls sideways"
    assert seen.faults == [] and said == [] and seen.outside == []


def test_a_study_is_turned_by_keys_alone(visit):
    seen = visit(new=True, width=1280, height=800)
    page = seen.open("/study?slug=flover&executor=modelled&model=llama-2-7b&dtype=float16")
    page.get_by_text("24 of 24").first.wait_for()
    reached = []
    for _ in range(TABS):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUSED))
        if reached[-1] == "Static batches of eight":
            break
    assert reached[-1] == "Static batches of eight", reached
    page.keyboard.press("Enter")
    page.wait_for_url("**batching=static_batch**")
    assert seen.faults == []
