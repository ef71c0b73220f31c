"""Knob to picture: how long after a knob turns the browser shows another picture.

    python -m tests.bench.knob_to_picture [TURNS]

A modelled run of 200 requests on the study page: the count of requests is typed and entered, the
whole run is scheduled anew, and the clock runs from the key to the first frame with other pixels.
The aim is 0.3 s at the 95th percentile, on a machine that does nothing else.
"""

import sys
from typing import Any

from tests.bench.visits import arm, report, seconds, visited

PLACE = "/study?slug=flover&executor=modelled&model=llama-2-7b&dtype=float16&pages=4000"
LOAD = "&workload.count=200&workload.rate=0&max_running=200&workload.output.median=24"
AIM = 0.3  # seconds
SETTLE = 5_000  # milliseconds before the first turn


def measure(page: Any, turns: int) -> list[float]:
    """Seconds from each turn of the count of requests (201, 202, …) to another picture."""
    page.locator(".knobs summary").get_by_text("Workload").click()
    field = page.get_by_label("Count: value").element_handle()
    page.wait_for_timeout(SETTLE)
    found = []
    for turn in range(turns):
        field.fill(str(201 + turn))
        arm(page)
        field.press("Enter")
        found.append(seconds(page))
    return found


def main(turns: int) -> None:
    with visited() as (address, page):
        page.goto(f"{address}{PLACE}{LOAD}")
        report("a knob of a modelled run of 200 requests", measure(page, turns), AIM)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
