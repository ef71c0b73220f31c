"""How fluid the cache view is: frames a second in headless chromium while every frame is new.

    python -m tests.bench.page_map_fps [PAGES] [SECONDS]

A page gets a new packed frame of PAGES cells (20,000) at every animation frame, each with other
ages, glows and owners, and unpacks and paints it whole: what a live run costs the browser at most.
Printed: frames a second by arrangement, the time to paint one, and what a frame costs in Python.
"""

import base64
import json
import sys
import time

from engine.core.events import Opened, Page, Span, Token
from engine.core.log import Log
from tests.bench.visits import launched
from tests.widgets.browser import open_page
from widgets.canvas.drawing import EXPORT, settings, source
from widgets.canvas.packing import pack
from widgets.views.page_map import VIEW, PageMap

FRAMES = 24  # different frames, shown in turn
OWNERS = 160
PAINTS = """
window.paints = 0; window.spent = 0;
const paint = CanvasRenderingContext2D.prototype.putImageData;
CanvasRenderingContext2D.prototype.putImageData = function (image, ...rest) {
  if (image.width > 100) window.paints += 1;
  return paint.call(this, image, ...rest);
};
"""
FEED = """
const frames = DATA.map((text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
const heard = {}, values = {frame: frames[0], cursor: 1, chosen: "", window: {}, seek: -1,
  is_dark: false, options: OPTIONS};
const model = {get: (n) => values[n],
  set(n, v) { values[n] = v; (heard["change:" + n] || []).forEach((f) => f()); },
  on(e, f) { (heard[e] ||= []).push(f); }, off() {}, save_changes() {}};
drawing.render({model, el: document.querySelector("#here")});
let turn = 0;
const feed = () => {
  model.set("frame", frames[turn++ % frames.length]);
  requestAnimationFrame(feed);
};
requestAnimationFrame(feed);
"""


def filled(pages: int, page_size: int = 16) -> tuple[PageMap, Log]:
    """A cache of `pages` pages, nearly all held by 160 requests that share a prefix of 8 pages."""
    fold, log = PageMap(), Log()
    facts = {"pages": pages, "page_size": page_size, "host_pages": 256, "bytes_per_page": 32768}
    log.emit(Opened(0.0, {}, facts=facts))
    for page in range(8):
        log.emit(Page(0.01, page, "r0", "take", page * page_size))
        log.emit(Page(0.01, page, "r0", "index", page * page_size, page_size, page - 1))
    each = (pages - 64) // OWNERS
    for owner in range(1, OWNERS):
        for page in range(8):
            log.emit(Page(0.02, page, f"r{owner}", "hit", page * page_size, page_size))
        for i in range(each):
            log.emit(Page(0.02, owner * each + i, f"r{owner}", "take", (8 + i) * page_size))
        last = (8 + each) * page_size - 200
        log.emit(Span(0.03, f"r{owner}", "prefill", 0.02, tag=f"128:{last}"))
    for event in log:
        fold.add(event)
    return fold, log


def frames(fold: PageMap) -> tuple[list[bytes], float]:
    """Packed frames of as many decode steps, and the mean seconds to fold, frame and pack one."""
    found, spent = [], 0.0
    for step in range(FRAMES):
        now = 0.05 + step * 0.02
        begun = time.perf_counter()
        fold.add(Span(now, "engine", "step", now - 0.02, tag=f"decode={OWNERS} prefill=0"))
        for owner in range(OWNERS):
            fold.add(Token(now, f"r{owner}", "x"))
        found.append(pack(VIEW.draw().reduce(fold.frame(), {})))
        spent += time.perf_counter() - begun
    return found, spent / FRAMES


def main(pages: int, seconds: float) -> None:
    fold, log = filled(pages)
    packed, each = frames(fold)
    write = sys.stdout.write
    write(f"{pages:,} pages, {OWNERS} owners: {len(packed[0]) / 1024:.0f} KiB a frame, ")
    write(f"{each * 1e3:.1f} ms in Python to fold a step, frame and pack\n")
    data = json.dumps([base64.b64encode(p).decode() for p in packed])
    feed = FEED.replace("DATA", data, 1).replace("OPTIONS", json.dumps(settings(680)))
    script = source("page_map").replace(EXPORT, "const drawing =")
    html = f'<div id="here"></div><script type="module">{PAINTS}{script}{feed}</script>'
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = launched(play, "--disable-gpu")
        page, seen = open_page(browser, html, 1280, 760)
        for arrangement in ("By memory", "By owner"):
            page.get_by_text(arrangement).click()
            page.wait_for_timeout(700)
            rate = page.evaluate(
                """async (seconds) => {
                    const [from, at] = [window.paints, performance.now()];
                    await new Promise((done) => setTimeout(done, seconds * 1000));
                    return (window.paints - from) / (performance.now() - at) * 1000;
                }""",
                seconds,
            )
            write(f"{arrangement}: {rate:.1f} frames/s\n")
        write(f"errors: {seen.errors}\n" if seen.errors else "")


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 20_000,
        float(sys.argv[2]) if len(sys.argv) > 2 else 4.0,
    )
