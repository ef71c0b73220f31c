"""Knob to picture: how long after a knob turns the browser shows another picture.

A modelled run of 200 requests on the study page; the knob is turned through the page's own control,
the picture is the canvases' pixels. Run it by hand on a quiet machine beside `workbench`:

    python -m tests.bench.knob_to_picture [ADDRESS [TURNS]]

prints the quantiles in seconds; the aim is 0.3 s at the 95th percentile.
"""

import sys
import time

import numpy as np

ADDRESS = "/study?slug=flover&executor=modelled&model=llama-2-7b&dtype=float16&pages=4000"
SETTLE, REST = 15_000, 1_000  # milliseconds before the first turn and between turns
LOAD = "&workload.count=200&workload.rate=0&max_running=200&workload.output.median=24"
# Each canvas in sight scaled down to a few pixels, found once a turn: walking the page and encoding
# whole canvases would take longer than the picture.
WATCH = """() => {
  const small = window.small ||= new OffscreenCanvas(32, 24).getContext('2d',
    { willReadFrequently: true })
  const canvases = []
  const walk = (root) => { for (const e of root.querySelectorAll('*')) {
    const box = e.tagName === 'CANVAS' && e.width && e.height && e.getBoundingClientRect()
    if (box && box.bottom > 0 && box.top < innerHeight) canvases.push(e)
    if (e.shadowRoot) walk(e.shadowRoot) } }
  walk(document)
  const drawn = () => canvases.map((canvas) => {
    small.clearRect(0, 0, 32, 24); small.drawImage(canvas, 0, 0, 32, 24)
    return small.getImageData(0, 0, 32, 24).data.reduce((h, v) => (h * 31 + v) | 0, 7) }).join()
  const before = drawn()
  window.seen = null
  window.turned = performance.now()
  const look = () => { if (drawn() !== before) window.seen = performance.now()
    else requestAnimationFrame(look) }
  look() }"""


def measure(page, turns: int) -> list[float]:
    """Seconds from each turn of the count of requests (200, 201, …) to another picture."""
    field = page.locator("input[value='200']").first.element_handle(timeout=45_000)
    page.wait_for_timeout(SETTLE)
    found = []
    for turn in range(turns):
        field.fill(str(201 + turn))
        page.evaluate(WATCH)
        field.press("Enter")
        page.wait_for_function("() => window.seen !== null", timeout=30_000)
        found.append(page.evaluate("() => (window.seen - window.turned) / 1000"))
        page.wait_for_timeout(REST)
    return found


def main(address: str, turns: int) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{address}{ADDRESS}{LOAD}")
        begun = time.perf_counter()
        seconds = measure(page, turns)
        p50, p95 = np.quantile(seconds, [0.5, 0.95])
        took = time.perf_counter() - begun
        sys.stdout.write(f"{len(seconds)} turns: p50 {p50:.3f} s, p95 {p95:.3f} s ({took:.0f} s)\n")
        browser.close()


if __name__ == "__main__":
    words = [*sys.argv[1:], *("http://127.0.0.1:5006", "30")[len(sys.argv) - 1 :]]
    main(words[0], int(words[1]))
