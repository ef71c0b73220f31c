"""Pictures per second while a run streams 2,000 events a second.

    python -m tests.bench.pictures_per_second [SECONDS [EVENTS_A_SECOND]]

A run of the wall clock whose driver emits the events of a schedule of many requests at that rate,
followed live on the runs page, with each of its views in turn at the top of the window.
Counted are the animation frames in which a canvas in sight shows other pixels than in the frame
before: of any of them, and of each. The aim is 30 a second, SECONDS long for each view.
"""

import argparse
import sys
import time

from msgspec.structs import replace

from engine.core.events import AnyEvent, Closed, Opened
from engine.core.run import Live, Run
from tests.bench.visits import load, serve_until_killed, visited
from workbench.catalogue import study
from workbench.pages.shelf.shelf import Shelf

AIM = 30.0  # pictures a second
WARM, SETTLE = 3_000, 3_000  # milliseconds before the counts, and before each: charts are made once
TICK = 0.002  # seconds between emissions
NAME = "stream"
KNOBS = {
    "executor": "modelled", "model": "llama-2-7b", "dtype": "float16", "pages": 2000,
    "workload.count": 1200, "workload.rate": 8.0, "max_running": 32,
}  # fmt: skip


def slowed(rate: float) -> list[AnyEvent]:
    """Events of a modelled run, its time stretched or shrunk to `rate` events a second."""
    chosen = study("flover")
    log = Run.execute(chosen.driver, chosen.configured(KNOBS), study="flover").log
    scale = len(log) / rate / log.duration
    found = []
    for event in log:
        moved = {"time": event.time * scale}
        if hasattr(event, "start") and isinstance(event.start, float):
            moved["start"] = event.start * scale
        if isinstance(event, Opened):
            moved["clock"] = "wall"
        if not isinstance(event, Closed):
            found.append(replace(event, **moved))
    return found


def stream(events: list[AnyEvent], live: Live) -> None:
    """Emit each event when its time has come."""
    begun, at = time.perf_counter(), 0
    while at < len(events):
        now = time.perf_counter() - begun
        live.poll(now)
        while at < len(events) and events[at].time <= now:
            live.emit(events[at])
            at += 1
        time.sleep(TICK)


def serve(port: int, rate: float) -> None:
    """The app with that run, begun when its page is asked for, until this process is ended."""
    from workbench.live.live import LiveEngine
    from workbench.pages.app import live_config, make_server

    events = slowed(rate)

    class Begins(Shelf):
        def named(self, name: str) -> str:
            if not self.runs:
                chosen = study("flover")
                run = Run.start(lambda _, live: stream(events, live), chosen.config)
                self.keep(run, name)
            return name

    server = make_server(port, LiveEngine(live_config("stdlib-5m")), Begins())
    serve_until_killed(server)


def main(seconds: float, rate: float) -> None:
    views, words = study("flover").views, ("--rate", str(rate))
    program = ("-m", "tests.bench.pictures_per_second")
    with visited(words, program) as (address, page):
        page.goto(f"{address}/run?name={NAME}")
        page.locator("canvas").first.wait_for()
        page.wait_for_timeout(WARM)
        for place, view in enumerate(views):
            card = page.locator(".pw-card").nth(place)
            card.evaluate("card => card.scrollIntoView({ block: 'start' })")
            page.wait_for_timeout(SETTLE)
            counted = page.evaluate(f"() => pictures.count({seconds})")
            each = " ".join(f"{found:.0f}" for found in counted["each"])
            sys.stdout.write(
                f"{rate:.0f} events a second, {view}: {counted['pictures']:.1f} pictures a second "
                f"({each} of each canvas) in {counted['frames']:.1f} frames, "
                f"{1000 * counted['longest']:.0f} ms at most between two "
                f"(aim {AIM:.0f} a second; load {load()})\n"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=float, nargs="?", default=4.0)
    parser.add_argument("rate", type=float, nargs="?", default=2000.0)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rate", dest="serves", type=float, default=0.0)
    parser.add_argument("--no-browser", action="store_true")
    given = parser.parse_args()
    if given.port:
        serve(given.port, given.serves)
    else:
        main(given.seconds, given.rate)
