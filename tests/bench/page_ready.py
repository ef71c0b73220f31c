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
# Nothing is sampled but frames: in each, whether all parts are there.
READY = """() => {
  window.ready = null
  const there = () => {
    let heading = false, knob = false, bar = false
    const walk = (root) => { for (const e of root.querySelectorAll('h1, input, .transport, *')) {
      if (e.tagName === 'H1') heading ||= e.textContent.length > 0
      if (e.tagName === 'INPUT' && !e.classList.contains('scrub')) knob ||= e.offsetParent !== null
      if (e.className === 'transport') bar = true
      if (e.shadowRoot) walk(e.shadowRoot) } }
    walk(document)
    if (!(heading && knob && bar)) return false
    return window.pictures.sight().some((canvas) => {
      const ctx = canvas.getContext('2d')
      return ctx && ctx.getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v > 0) }) }
  const look = () => {
    if (document.body && there()) window.ready = performance.now() / 1000
    else requestAnimationFrame(look) }
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
