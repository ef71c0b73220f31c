"""Hatching in a real browser: one band behind what is modelled, and nothing of it on what is real,
however many owners there are."""

import pytest

from tests.widgets.browser import open_page, settle
from tests.widgets.made_runs import serving
from tests.widgets.views.schedule.made import pipeline
from widgets.export.replay import static_view
from widgets.view import view

pytestmark = pytest.mark.ui
OWNERS = 14  # more than there are hues
LANES = ("request_lanes", "token_river")  # whose owners are named beside their marks

# What each canvas is asked to draw, a letter each: c a new picture, h lines at 45 degrees longer
# than any mark's, m a filled box, p one filled with a pattern.
WATCH = """<script>{
  const P = CanvasRenderingContext2D.prototype, told = window.told = new Map()
  const tell = (ctx, what) => told.set(ctx, (told.get(ctx) || "") + what)
  const before = (name, act) => { const was = P[name]
    P[name] = function (...words) { act(this, ...words); return was.apply(this, words) } }
  let at = [0, 0], slanted = false
  before("beginPath", () => { slanted = false })
  before("moveTo", (_, x, y) => { at = [x, y] })
  before("lineTo", (_, x, y) => {
    const [wide, high] = [Math.abs(x - at[0]), Math.abs(y - at[1])]
    slanted ||= wide > 12 && Math.abs(wide - high) < 1e-6
    at = [x, y] })
  before("stroke", (ctx) => { if (slanted) tell(ctx, "h") })
  before("fillRect", (ctx) => tell(ctx, ctx.fillStyle instanceof CanvasPattern ? "p" : "m"))
  before("clearRect", (ctx) => tell(ctx, "c"))
  before("scale", (ctx) => tell(ctx, "c"))  // of a canvas that is kept, begun anew
}</script>"""
PICTURES = "[...window.told.values()].flatMap((text) => text.split('c')).filter(Boolean)"


def pictures(browser, name, clock):
    """What was drawn of a run with that clock, a text for each picture of each canvas."""
    if name == "schedule":
        log = pipeline(4, 8, memory=True, memory_limit=20.0, clock=clock)
    else:
        log = serving(requests=OWNERS, clock=clock)
    page, seen = open_page(browser, WATCH + static_view(view(name), log, is_dark=False))
    settle(page)
    assert seen.errors == []
    return page.evaluate(PICTURES), page.locator(".pw-chip").count()


@pytest.mark.parametrize("name", [*LANES, "page_map", "schedule"])
def test_what_is_modelled_is_hatched_once_behind_its_marks(browser, name):
    drawn, chips = pictures(browser, name, "virtual")
    hatched = [text for text in drawn if "h" in text]
    assert chips == 1 and hatched
    for text in hatched:
        behind, *more = text.split("h")
        assert len(more) == 1, "a band for the plot, not one for each mark"
        assert "m" in more[0], "the marks stand on it"


@pytest.mark.parametrize("name", [*LANES, "page_map", "schedule"])
def test_nothing_real_is_hatched_with_more_owners_than_hues(browser, name):
    drawn, chips = pictures(browser, name, "wall")
    assert chips == 0 and any("m" in text for text in drawn)
    assert not any("h" in text for text in drawn)
    if name in LANES:  # nor has a lane a pattern: its name tells it from another of its hue
        assert not any("p" in text for text in drawn)
