"""Knob to picture of a recorded run: how long after an input the page shows another picture.

    python -m tests.bench.replay_to_picture [TIMES]

A recorded run of 200 requests on the runs page. Three inputs, each made by the browser as a
person's is: a click into the time bar (the views go to that moment), a step on by the arrow key,
and a view's own knob (pages by memory or by owner). The clock runs from the input to the first
frame with other pixels. The aim is 0.15 s at the 95th percentile.
"""

import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.core.file import save
from engine.core.run import Run
from tests.bench.visits import arm, chromium, report, seconds
from tests.ui.served import serving
from workbench.catalogue import study

AIM = 0.15  # seconds
KNOB = ("By memory", "By owner")  # of the view of pages
KNOBS = {
    "executor": "modelled", "model": "llama-2-7b", "dtype": "float16", "pages": 4000,
    "workload.count": 200, "max_running": 64,
}  # fmt: skip


def recorded(path: Path) -> Path:
    """A modelled run of 200 requests as a file."""
    chosen = study("flover")
    run = Run.execute(chosen.driver, chosen.configured(KNOBS), study="flover")
    return save(run.log, path)


def inputs(page: Any) -> dict[str, Callable[[int], None]]:
    """Name -> what makes the input for the nth time."""
    dice = random.Random(7)
    bar = page.locator("input[type=range].scrub")
    width = bar.bounding_box()["width"]
    arranged = [page.get_by_role("button", name=name, exact=True) for name in KNOB]

    def scrub(_: int) -> None:
        bar.click(position={"x": dice.uniform(0.05, 0.95) * width, "y": 12})

    return {
        "scrubbing a recorded run": scrub,
        "a step of a recorded run": lambda _: page.keyboard.press("ArrowRight"),
        "a view's knob on a recorded run": lambda n: arranged[(n + 1) % 2].click(),
    }


def main(times: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = recorded(Path(folder) / "recorded.run")
        with serving(Path(folder), ("open", str(file))) as address, chromium() as page:
            page.goto(f"{address}/run?file={file}")
            page.locator("canvas").first.wait_for()
            for what, act in inputs(page).items():
                if "knob" in what:
                    knob = page.get_by_role("button", name=KNOB[0], exact=True)
                    knob.scroll_into_view_if_needed()
                found = []
                for n in range(times):
                    arm(page)
                    act(n)
                    found.append(seconds(page))
                report(what, found, AIM)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
