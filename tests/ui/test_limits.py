"""Limits in the latency view: put by a key, dragged by the pointer; who kept them is counted."""

import pytest

pytestmark = pytest.mark.ui
STUDY = "/study?slug=flover&executor=modelled&workload.count=12"
WAITS = "canvas[aria-label^='How long do requests wait']"
DONE = """() => {
  const all = (root) => [...root.querySelectorAll('*')].flatMap(
    (e) => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])]);
  return all(document).some((e) => e.className === 'pw-figures'
    && e.innerText.includes('per token') && /in all\\s+12$/.test(e.innerText.trim()));
}"""
LATENCY = "canvas[aria-label*='L puts limits']"


def test_a_limit_is_put_moved_dragged_and_taken_away(visit):
    seen = visit(width=1280, height=900)
    page = seen.open(STUDY)
    page.locator(WAITS).last.scroll_into_view_if_needed()
    over = page.locator(LATENCY)  # its frame comes once it is near
    over.wait_for()
    figures = page.locator("section", has=over).locator(".pw-figures")
    figures.get_by_text("finished, 12 in all").wait_for()
    page.get_by_role("slider", name="Moment of the run").press("End")
    page.wait_for_function(DONE)
    over.focus()
    page.keyboard.press("l")
    figures.get_by_text("goodput").wait_for()
    page.keyboard.press("l")
    figures.get_by_text("finished, 12 in all").wait_for()
    seen.settled()
    box = over.bounding_box()
    # The grip of the first plot: where a press changes the pointer to that of a line that moves.
    for x in range(int(box["width"] / 2), 60, -3):
        page.mouse.move(box["x"] + x, box["y"] + 26)
        if over.evaluate("c => c.style.cursor") == "ew-resize":
            break
    assert over.evaluate("c => c.style.cursor") == "ew-resize"
    page.mouse.down()
    page.mouse.move(box["x"] + 58, box["y"] + 60, steps=4)
    page.mouse.up()
    figures.get_by_text("goodput, 0 of 12 within each limit").wait_for()
    assert seen.faults == []
