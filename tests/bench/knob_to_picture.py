"""Knob to picture: how long after a knob turns the browser shows another picture.

A modelled run of 200 requests on the study page; the knob is turned through the page's own controls
(a try button), the picture is the canvases' pixels. Run it by hand on a quiet machine:

    python -m tests.bench.knob_to_picture

prints the quantiles in seconds; the aim is 0.3 s at the 95th percentile.
"""

import sys
import time

import numpy as np

ADDRESS = "/study?slug=flover&executor=modelled&model=llama-2-7b&dtype=float16&pages=4000"
LOAD = "&workload.count=200&workload.rate=0&max_running=200&workload.output.median=24"
DRAWN = """() => {
  const all = []
  const walk = (root) => { for (const e of root.querySelectorAll('*')) {
    if (e.tagName === 'CANVAS' && e.width && e.height) all.push(e.toDataURL())
    if (e.shadowRoot) walk(e.shadowRoot) } }
  walk(document); return all.join() }"""
WATCH = f"""() => {{ const drawn = {DRAWN}; window.before = drawn(); window.seen = null
  window.turned = performance.now()
  const look = () => {{ if (drawn() !== window.before) window.seen = performance.now()
    else requestAnimationFrame(look) }}; look() }}"""


def measure(page, turns: int) -> list[float]:
    """Seconds from each turn of the `max_running` knob to another picture."""
    field = page.get_by_role("spinbutton").first
    field.wait_for()
    page.wait_for_timeout(8000)
    found = []
    for turn in range(turns):
        page.get_by_role("button", name="Randomise").wait_for()
        field.fill(str(turn + 1))
        page.evaluate(WATCH)
        field.press("Enter")
        page.wait_for_function("() => window.seen !== null", timeout=30_000)
        found.append(page.evaluate("() => (window.seen - window.turned) / 1000"))
        page.wait_for_timeout(1500)
    return found


def main(address: str, turns: int = 30) -> None:
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
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:5006")
