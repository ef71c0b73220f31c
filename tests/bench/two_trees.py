"""Two trees in turns: a knob to a picture, and a page ready, of this tree and of another.

    python -m tests.bench.two_trees OTHER_TREE [TURNS [OPENINGS]]

Both apps are served and both browsers stand open at once; each turn of a knob and each opening of
a page is done in the one and then in the other, the first of them by turns, so that whatever else
the machine does meets both. The ratio is this tree's time over the other's.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.knob_to_picture import LOAD, PLACE
from tests.bench.page_ready import READY, STUDIES, opened
from tests.bench.visits import SCRIPT, arm, launched, load, seconds
from tests.ui.served import serving

SETTLE = 6_000  # milliseconds before the first turn


@contextmanager
def sides(trees: list[str]) -> Iterator[list[tuple[str, Any]]]:
    """The address and the browser of each tree's app."""
    from playwright.sync_api import sync_playwright

    before = os.environ.get("PYTHONPATH")
    with ExitStack() as stack:
        play, found = stack.enter_context(sync_playwright()), []
        for tree in trees:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            os.environ["PYTHONPATH"] = tree
            address = stack.enter_context(serving(folder, place=Path(tree)))
            browser = launched(play)
            stack.callback(browser.close)
            found.append((address, browser))
        if before is not None:
            os.environ["PYTHONPATH"] = before
        yield found


def page_of(browser: Any, *scripts: str) -> Any:
    """A new page that can tell when its pictures change."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    for script in (SCRIPT, *scripts):
        page.add_init_script(script)
    page.set_default_timeout(60_000)
    return page


def told(what: str, ours: list[float], theirs: list[float]) -> None:
    """One line: both medians, and the median and middle half of the ratios of pairs."""
    low, middle, high = np.quantile(np.array(ours) / np.array(theirs), [0.25, 0.5, 0.75])
    sys.stdout.write(
        f"{what}: {len(ours)} pairs, here {1000 * np.median(ours):.0f} ms, "
        f"there {1000 * np.median(theirs):.0f} ms, ratio {middle:.2f} "
        f"[{low:.2f}, {high:.2f}] (load {load()})\n"
    )
    sys.stdout.flush()


def turned(both: list[tuple[str, Any]], turns: int) -> None:
    """A knob of a modelled run of 200 requests, in both."""
    pages, fields = [page_of(browser) for _, browser in both], []
    for page, (address, _) in zip(pages, both, strict=True):
        page.goto(f"{address}{PLACE}{LOAD}")
        page.locator(".knobs summary").get_by_text("Workload").click()
        fields.append(page.get_by_label("Count: value").element_handle())
    pages[0].wait_for_timeout(SETTLE)
    found: list[list[float]] = [[], []]
    for turn in range(turns):
        for side in (0, 1) if turn % 2 else (1, 0):
            fields[side].fill(str(201 + turn))
            arm(pages[side])
            fields[side].press("Enter")
            found[side].append(seconds(pages[side]))
    for page in pages:
        page.close()
    told("a knob to a picture", *found)


def readied(both: list[tuple[str, Any]], slug: str, openings: int) -> None:
    """A study's page, opened again and again in both; the first time is not counted."""
    pages = [page_of(browser, f"({READY})()") for _, browser in both]
    found: list[list[float]] = [[], []]
    for turn in range(openings + 1):
        for side in (0, 1) if turn % 2 else (1, 0):
            spent = opened(pages[side], f"{both[side][0]}/study?slug={slug}")
            if turn:
                found[side].append(spent)
    for page in pages:
        page.close()
    told(f"the page of {slug}, opened again", *found)


def main(other: str, turns: int, openings: int) -> None:
    here = str(Path(__file__).resolve().parents[2])
    with sides([here, str(Path(other).resolve())]) as both:
        if turns:
            turned(both, turns)
        for slug in STUDIES if openings else ():
            readied(both, slug, openings)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m tests.bench.two_trees OTHER_TREE [TURNS [OPENINGS]]")
    counts = [int(word) for word in sys.argv[2:4]]
    main(sys.argv[1], *(counts + [20, 8][len(counts) :]))
