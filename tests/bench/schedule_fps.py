"""How fluid a schedule is: pictures a second in headless chromium while it is panned and zoomed.

    python -m tests.bench.schedule_fps [SPANS] [LANES] [SECONDS]

A page holds SPANS spans (100,000) in LANES lanes (16), all of them in the browser, and is moved by
its own keys at every animation frame: zoomed in and out, panned where spans are too short to be
told apart, and panned where they are as wide as their names. Printed: pictures a second of each,
the time a picture takes its script, and how many processes the machine was running meanwhile.
"""

import os
import random
import sys

from engine.core.events import Closed, Opened, Span
from engine.core.log import Log
from tests.bench.visits import launched
from tests.widgets.browser import open_page
from widgets.export.replay import static_view
from widgets.view import view

NAMES = ("F", "B", "W", "all_reduce", "send", "optimizer")
KEYS = {"zoomed in and out": "wwwwwwwwssssssss", "panned, all in sight": "wwddddddddaaaaaaaass",
        "panned, close up": "dddddddddddddddaaaaaaaaaaaaaaa"}  # fmt: skip
CLOSE = 24  # turns of the key that zooms, before the last
MOVE = """async ([seconds, keys]) => {
  const canvas = document.querySelector(".pw-surface canvas");
  const next = () => new Promise((done) => requestAnimationFrame(done));
  let count = 0, spent = [], turn = 0;
  const begun = performance.now();
  while (performance.now() - begun < seconds * 1000) {
    const key = keys[turn++ % keys.length];
    const before = window.painted;
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await next();
    count += window.painted > before;
    if (window.took > 0) spent.push(window.took);
  }
  spent.sort((a, b) => a - b);
  return [count / (performance.now() - begun) * 1000, spent[spent.length >> 1] || 0];
}"""
WATCH = """
window.painted = 0; window.took = 0;
const ask = window.requestAnimationFrame;
window.requestAnimationFrame = (act) => ask((now) => {
  const begun = performance.now(), before = window.painted;
  act(now);
  if (window.painted > before) window.took = performance.now() - begun;
});
const clear = CanvasRenderingContext2D.prototype.clearRect;
CanvasRenderingContext2D.prototype.clearRect = function (...rest) {
  if (this.canvas.parentNode?.classList.contains("pw-surface")) window.painted += 1;
  return clear.call(this, ...rest);
};
"""


def filled(spans: int, lanes: int) -> Log:
    """A job whose lanes are busy nine tenths of the time, each span of its own length."""
    dice, events = random.Random(0), []
    free = [0.0] * lanes
    for number in range(spans):
        lane = number % lanes
        start = free[lane] + dice.expovariate(1 / 0.1e-3)
        free[lane] = start + dice.expovariate(1 / 0.9e-3)
        name, task = dice.choice(NAMES), f"mb={number // lanes % 64}"
        events.append(Span(free[lane], f"rank {lane}", name, start, tag=task))
    events.sort(key=lambda event: event.time)
    last = events[-1].time
    return Log([Opened(0.0, {"bench": spans}), *events, Closed(last, "finished")])


def main(spans: int, lanes: int, seconds: float) -> None:
    from playwright.sync_api import sync_playwright

    write = sys.stdout.write
    page_text = static_view(view("schedule"), filled(spans, lanes), bar=False)
    write(f"{spans:,} spans in {lanes} lanes: a page of {len(page_text) / 2**20:.1f} MiB\n")
    with sync_playwright() as play:
        browser = launched(play, "--disable-gpu")
        page, seen = open_page(browser, f"<script>{WATCH}</script>{page_text}", 1280, 800)
        page.wait_for_timeout(1500)
        for name, keys in KEYS.items():
            if name.endswith("close up"):
                page.locator(".pw-surface canvas").first.focus()
                for _ in range(CLOSE):
                    page.keyboard.press("w")
            rate, took = page.evaluate(MOVE, [seconds, keys])
            load = os.getloadavg()[0]
            write(f"{name}: {rate:.1f} pictures/s, {took:.1f} ms of script in the median")
            write(f" (load {load:.1f})\n")
        write(f"errors: {seen.errors[:2]}\n" if seen.errors else "")
        browser.close()


if __name__ == "__main__":
    given = [float(word) for word in sys.argv[1:]]
    spans, lanes, seconds = (*given, *(100_000, 16, 4.0)[len(given) :])
    main(int(spans), int(lanes), seconds)
