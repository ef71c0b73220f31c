"""How fluid the thread view is: frames a second in headless chromium while every frame is new.

    python -m tests.bench.threads_fps [THREADS] [TOKENS] [SECONDS]

A page gets a new packed frame of THREADS threads (64) with TOKENS tokens each (4,096) at every
animation frame, each a step further on and with other sights, and unpacks and paints it whole:
lanes, forks, the critical path, the text that is read, and the matrix of who sees which block.
Printed: frames a second by axis and close up, the time to paint one, what a frame costs in Python.
"""

import base64
import json
import random
import sys
import time

from engine.core.events import Branch, Level, Mark, Opened, Span, Token
from tests.bench.page_map_fps import FEED
from tests.bench.visits import launched
from tests.widgets.browser import open_page, zoom
from widgets.canvas.drawing import EXPORT, settings, source
from widgets.canvas.packing import pack
from widgets.views.threads import VIEW, Threads

FRAMES = 6  # different frames, shown in turn
STEP = 0.02  # seconds
TURN = 64  # steps between moves of what is seen
SHOWN = {
    "all, time": {"axis": "time"},
    "all, steps": {"axis": "step"},
    "all, tokens": {"axis": "place"},
    "close up, tokens": {"axis": "place", "close": 0.01},
}
PAINTS = """
window.paints = 0; window.spent = [];
const clear = CanvasRenderingContext2D.prototype.clearRect;
CanvasRenderingContext2D.prototype.clearRect = function (...rest) {
  if (this.canvas.parentNode?.classList.contains("pw-lanes")) window.paints += 1;
  return clear.call(this, ...rest);
};
const next = window.requestAnimationFrame;
window.requestAnimationFrame = (act) => next((now) => {
  const begun = performance.now();
  act(now);
  window.spent.push(performance.now() - begun);
});
"""


def speak(fold: Threads, step: int, threads: int, dice: random.Random) -> None:
    """One step: a token of each thread, and now and then all that is seen moves."""
    now = step * STEP
    if step % TURN == 1:
        for i in range(threads):
            for j in range(threads):
                offset = (j - i) % threads * 64.0 + step
                fold.add(Level(now - STEP / 2, f"t{i}", f"sees/t{j}", offset))
    for i in range(threads):
        fold.add(Token(now, f"t{i}", f" w{step % 97}", -dice.expovariate(1.2)))
    fold.add(Span(now, "engine", "step", now - STEP))


def filled(threads: int, tokens: int) -> Threads:
    """A run just before its end: each thread forks from another, every eighth reads its parent."""
    fold, dice = Threads(), random.Random(0)
    fold.add(Opened(0.0, {}))
    for i in range(threads):
        fold.add(Branch(0.0, f"t{i}", f"t{(i - 1) // 4}" if i else ""))
    for step in range(1, tokens - FRAMES + 1):
        speak(fold, step, threads, dice)
        if step % 256 == 0:
            for i in range(8, threads, 8):
                fold.add(Mark(step * STEP, f"t{i}", "join", f"t{(i - 1) // 4}"))
    return fold


def window(how: dict, threads: int, tokens: int) -> dict:
    """What the browser says it shows; close up a share of the axis that is `close`."""
    end = tokens * STEP if how["axis"] == "time" else tokens
    start = end * (1 - 2 * how["close"]) if "close" in how else 0.0
    stop = start + end * how.get("close", 1.0)
    shown = {"start": start, "stop": stop, "first": 0, "last": threads}
    return {**shown, "axis": how["axis"], "reading": 3, "until": tokens * STEP}


def frames(threads: int, tokens: int) -> tuple[dict[str, list[bytes]], float, float]:
    """Packed frames of as many steps for each way of looking, and mean seconds in Python to fold a
    step, and to frame, reduce and pack it once."""
    fold, dice = filled(threads, tokens), random.Random(1)
    found: dict[str, list[bytes]] = {name: [] for name in SHOWN}
    folding = framing = 0.0
    for step in range(tokens - FRAMES + 1, tokens + 1):
        begun = time.perf_counter()
        speak(fold, step, threads, dice)
        folding += time.perf_counter() - begun
        for name, how in SHOWN.items():
            begun = time.perf_counter()
            fold._framed = -1  # a frame is kept until something happens; here each is made anew
            packed = pack(VIEW.draw().reduce(fold.frame(), window(how, threads, tokens)))
            framing += (time.perf_counter() - begun) / len(SHOWN)
            found[name].append(packed)
    return found, folding / FRAMES, framing / FRAMES


def page_of(packed: list[bytes]) -> str:
    data = json.dumps([base64.b64encode(p).decode() for p in packed])
    feed = FEED.replace("DATA", data, 1).replace("OPTIONS", json.dumps(settings(680)))
    feed = feed.replace("cursor: 1", "cursor: 1e9")
    script = source("threads").replace(EXPORT, "const drawing =")
    return f'<div id="here"></div><script type="module">{PAINTS}{script}{feed}</script>'


def main(threads: int, tokens: int, seconds: float) -> None:
    found, folding, framing = frames(threads, tokens)
    write = sys.stdout.write
    size = max(len(p) for packed in found.values() for p in packed)
    write(f"{threads} threads of {tokens:,} tokens: at most {size / 1024:.0f} KiB a frame; ")
    write(f"Python folds a step in {folding * 1e3:.1f} ms, ")
    write(f"frames, reduces and packs in {framing * 1e3:.1f} ms\n")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = launched(play, "--disable-gpu")
        for name, how in SHOWN.items():
            page, seen = open_page(browser, page_of(found[name]), 1280, 860)
            label = {"time": "Time", "step": "Steps", "place": "Tokens"}[how["axis"]]
            page.get_by_role("button", name=label, exact=True).click()
            if "close" in how:
                page.locator(".pw-lanes canvas").hover(position={"x": 600, "y": 200})
                zoom(page, 8)
            page.wait_for_timeout(700)
            rate, spent = page.evaluate(
                """async (seconds) => {
                    const [from, at] = [window.paints, performance.now()];
                    window.spent = [];
                    await new Promise((done) => setTimeout(done, seconds * 1000));
                    const took = performance.now() - at;
                    // What a frame asked for and what paints it are calls apart: the longer counts.
                    const each = window.spent.filter((ms) => ms > 1).sort((a, b) => a - b);
                    return [(window.paints - from) / took * 1000, each[each.length >> 1] || 0];
                }""",
                seconds,
            )
            write(f"{name}: {rate:.1f} frames/s, {spent:.1f} ms of script in the median\n")
            write(f"errors: {seen.errors[:2]}\n" if seen.errors else "")
            page.context.close()


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 64,
        int(sys.argv[2]) if len(sys.argv) > 2 else 4096,
        float(sys.argv[3]) if len(sys.argv) > 3 else 4.0,
    )
