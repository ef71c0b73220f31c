"""What the benches of pages share: a browser at a served page, when its pictures change, a report.

A picture is what the canvases in sight show. It is taken as changed at the first animation frame
that finds other pixels, which is the frame after they were drawn or the same one: never too early.
"""

import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.ui.served import START, serving
from workbench.notebook.pictures import browser

# Each canvas in sight by a few thousand of its pixels: to encode or scale down whole canvases would
# take longer than the picture. When pictures are counted, a canvas that nobody cleared is not
# looked at again. `arm` starts the clock at the next input a person (or playwright) makes.
SCRIPT = """(() => {
  const inputs = ['pointerdown', 'keydown', 'input']
  const [wide, high] = [96, 64]
  const small = new OffscreenCanvas(wide, high).getContext('2d', { willReadFrequently: true })
  const cleared = new WeakSet(), clear = CanvasRenderingContext2D.prototype.clearRect
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    cleared.add(this.canvas)
    return clear.apply(this, box) }
  const sight = () => {
    const canvases = []
    const walk = (root) => { for (const e of root.querySelectorAll('*')) {
      const box = e.tagName === 'CANVAS' && e.width > 64 && e.height && e.getBoundingClientRect()
      if (box && box.width && box.bottom > 0 && box.top < innerHeight) canvases.push(e)
      if (e.shadowRoot) walk(e.shadowRoot) } }
    walk(document)
    return canvases }
  const pixels = (canvas) => {
    small.clearRect(0, 0, wide, high)
    small.drawImage(canvas, 0, 0, wide, high)
    const found = new Uint32Array(small.getImageData(0, 0, wide, high).data.buffer)
    let hash = 7
    for (let i = 0; i < found.length; i++) hash = (hash * 31 + found[i]) | 0
    return hash }
  const picture = (canvases) => canvases.map(pixels).join()
  const watch = window.pictures = { seconds: null, sight, picture }
  watch.arm = () => {
    const canvases = sight(), before = picture(canvases)
    watch.seconds = null
    const begun = (event) => {
      for (const name of inputs) removeEventListener(name, begun, true)
      const look = () => {
        if (picture(canvases) === before) requestAnimationFrame(look)
        else watch.seconds = (performance.now() - event.timeStamp) / 1000 }
      requestAnimationFrame(look) }
    for (const name of inputs) addEventListener(name, begun, true) }
  // How many frames a second show another picture than the frame before, of any canvas in sight and
  // of each, and the longest time without.
  watch.count = (seconds) => new Promise((done) => {
    const canvases = sight(), begun = performance.now(), each = canvases.map(() => 0)
    let last = canvases.map(pixels), changed = begun, frames = 0, pictures = 0, longest = 0
    const look = () => {
      const now = performance.now()
      const shown = canvases.map((canvas, i) => cleared.delete(canvas) ? pixels(canvas) : last[i])
      const others = shown.map((hash, i) => hash !== last[i])
      frames += 1
      others.forEach((other, i) => { each[i] += other })
      if (others.some(Boolean)) {
        pictures += 1
        longest = Math.max(longest, now - changed);
        [last, changed] = [shown, now] }
      const rate = (count) => count / (now - begun) * 1000
      if (now - begun < 1000 * seconds) requestAnimationFrame(look)
      else done({ frames: rate(frames), pictures: rate(pictures), each: each.map(rate),
        longest: longest / 1000 }) }
    requestAnimationFrame(look) })
})()"""


def launched(play: Any, *words: str) -> Any:
    """A browser of this machine, started without windows with `words` besides."""
    path = browser()
    if path is None:
        sys.exit("no chromium on this machine: apt-get install chromium-headless-shell")
    return play.chromium.launch(executable_path=path, args=["--no-sandbox", *words])


@contextmanager
def chromium(width: int = 1280, height: int = 900) -> Iterator[Any]:
    """A page of a headless chromium that can tell when its pictures change."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        made = launched(play)
        page = made.new_page(viewport={"width": width, "height": height})
        page.add_init_script(SCRIPT)
        page.set_default_timeout(60_000)
        yield page
        made.close()


def serve_until_killed(server: Any) -> None:
    """Serve from this process until it is told to end, as the app itself does."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server.start()
    server.io_loop.start()


@contextmanager
def visited(words: Sequence[str] = (), program: Sequence[str] = START) -> Iterator[tuple[str, Any]]:
    """The address of an app served for this bench alone, and a browser's page."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), words, program) as address,
        chromium() as page,
    ):
        yield address, page


def arm(page: Any) -> None:
    """Wait for a rest of the picture, then start the clock at the next input."""
    settle(page)
    page.evaluate("() => pictures.arm()")


def settle(page: Any, rest: float = 0.5) -> None:
    """Wait until the picture has stayed the same for `rest` seconds."""
    last, still = None, 0.0
    while still < rest:
        page.wait_for_timeout(100)
        now = page.evaluate("() => pictures.picture(pictures.sight())")
        still, last = (still + 0.1 if now == last else 0.0), now


def seconds(page: Any) -> float:
    """From the input to the frame with another picture."""
    page.wait_for_function("() => pictures.seconds !== null", polling=50, timeout=30_000)
    return float(page.evaluate("() => pictures.seconds"))


def load() -> str:
    """How busy the machine is: processes that want to run, over 1, 5 and 15 minutes."""
    return " ".join(Path("/proc/loadavg").read_text().split()[:3])


def report(what: str, found: Sequence[float], aim: float) -> None:
    """One line: median, 95th percentile and worst in milliseconds, the aim, the load."""
    p50, p95, worst = (1000 * x for x in np.quantile(found, [0.5, 0.95, 1.0]))
    sys.stdout.write(
        f"{what}: {len(found)} times, p50 {p50:.0f} ms, p95 {p95:.0f} ms, worst {worst:.0f} ms "
        f"(aim {1000 * aim:.0f} ms at p95; load {load()})\n"
    )
    sys.stdout.flush()
