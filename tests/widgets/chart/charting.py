"""Runs whose charts are known to the pixel, and what is read off a chart in a browser."""

from engine.core.events import Branch, Level, Opened, Token
from engine.core.log import Log
from tests.widgets.browser import open_page
from widgets.export.replay import static_view
from widgets.view import view

UNDER, OVER = "canvas >> nth=0", "canvas >> nth=1"
ATTACK = "<img src=x onerror=alert(1)>"
LEFT = 52  # pixels left of a plot
TOLD = """name => {
  window.told = []
  document.addEventListener(name, (event) => told.push(event.detail)) }"""


def ramp(name="load", clock="wall") -> Log:
    """One quantity that is 0, 1 … 9, each for a tenth of a second."""
    header = Opened(0.0, {}, clock=clock, facts={})
    log = Log([header, *(Level(i / 10, "engine", name, float(i)) for i in range(10))])
    log.emit(Level(1.0, "engine", name, 0.0))
    return log


def waits(count=12) -> Log:
    """Requests whose first token takes 10 ms, 20 ms … each."""
    log = Log([Opened(0.0, {})])
    for i in range(count):
        log.emit(Branch(float(i), f"r{i}", state="queued"))
        log.emit(Token(i + 0.01 * (i + 1), f"r{i}", "a"))
    return log


def shown(browser, name, log, **how):
    return open_page(browser, static_view(view(name), log, bar=False, is_dark=False, **how))


def width_of_plot(page):
    """From the left axis to where lines end, in pixels of the canvas."""
    return page.evaluate("""() => {
        const ctx = document.querySelector("canvas").getContext("2d")
        return Math.max(8, Math.ceil(ctx.measureText("load").width) + 12) }""")


def plot(page):
    """The canvas's box, and the left and right end of its plot within it."""
    box = page.locator(OVER).bounding_box()
    return box, LEFT, box["width"] - width_of_plot(page)


def columns(page, selector, color, row):
    """Where on a row of a canvas pixels are of that colour."""
    return page.locator(selector).evaluate(
        """(canvas, [color, row]) => {
            const { data, width } = canvas.getContext("2d").getImageData(0, row, canvas.width, 1)
            const at = [...Array(width).keys()]
            return at.filter((x) => data[4 * x + 3] > 200
                && color.every((part, i) => Math.abs(data[4 * x + i] - part) < 12)) }""",
        [color, row],
    )


def rgb(color):
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]
