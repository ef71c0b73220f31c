"""Page ready: how long after an address is entered a study's page can be seen and used.

    python -m tests.bench.page_ready [TIMES [SLUG …]]

The clock runs from the navigation's start to the first frame in which the heading, a knob and the
time bar are there and a view in sight has been drawn. The server is warm: it has shown the page
before. Once with the browser's cache empty, once with the page's files in it. The aim is 2 s.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.visits import chromium, report
from tests.ui.served import serving

AIM = 2.0  # seconds
STUDIES = ("flover", "batchllm", "hogwild", "megatron")
# A look walks the page, so there is one at most every 50 ms, and what was found once is not looked
# for again: the page has the processor to itself nearly all the time. It is never too early.
READY = """() => {
  window.ready = null
  const found = { heading: false, knob: false, bar: false }
  const parts = () => {
    const walk = (root) => { for (const e of root.querySelectorAll('*')) {
      if (e.tagName === 'H1') found.heading ||= e.textContent.length > 0
      if (e.tagName === 'INPUT' && !e.classList.contains('scrub'))
        found.knob ||= e.offsetParent !== null
      if (e.className === 'transport') found.bar = true
      if (e.shadowRoot) walk(e.shadowRoot) } }
    if (!(found.heading && found.knob && found.bar)) walk(document)
    return found.heading && found.knob && found.bar }
  const drawn = (canvas) => {
    const ctx = canvas.getContext('2d')
    return ctx && ctx.getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v > 0) }
  let last = 0
  const look = () => {
    const now = performance.now()
    if (document.body && now - last >= 50) {
      last = now
      if (parts() && window.pictures.sight().some(drawn)) {
        window.ready = performance.now() / 1000
        return } }
    requestAnimationFrame(look) }
  requestAnimationFrame(look) }"""


def opened(page: Any, place: str) -> float:
    """Seconds from the start of the navigation until the page is ready."""
    page.goto(place, wait_until="commit")
    page.wait_for_function("() => window.ready", polling=50)
    return float(page.evaluate("() => window.ready"))


def main(times: int, slugs: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as address:
        for slug in slugs:
            place = f"{address}/study?slug={slug}"
            fresh = []
            for _ in range(1 + max(1, times // 4)):
                with chromium() as page:
                    page.add_init_script(f"({READY})()")
                    fresh.append(opened(page, place))
            with chromium() as page:
                page.add_init_script(f"({READY})()")
                again = [opened(page, place) for _ in range(times + 1)]
            report(f"the page of {slug}, nothing cached", fresh[1:], AIM)
            report(f"the page of {slug}, opened again", again[1:], AIM)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    main(count, sys.argv[2:] or list(STUDIES))
