"""How much of each link is used, over time: what levels named `link use` tell.

`facts["links"]` of the header gives each link's bandwidth in bytes per second; a level in a link's
lane says how many of them are used from then on.
"""

from typing import Any

import numpy as np

from engine.core.events import Level
from widgets.canvas.columns import Columns
from widgets.theme import figure
from widgets.views.schedule.lanes import in_order

USE = "link use"
PIECES = 240  # of the time up to the cursor
MOST = 24  # links shown, the busiest first


class Links:
    """Changes of use in the order of time."""

    def __init__(self) -> None:
        self.bandwidth: dict[str, float] = {}
        self.number: dict[str, int] = {}
        self.changes = Columns(link="u4", time="f8", use="f8")

    def open(self, links: object) -> None:
        """From the header; anything but names with bandwidths is passed over."""
        if isinstance(links, dict):
            self.bandwidth = {
                str(name): float(rate)
                for name, rate in links.items()
                if isinstance(rate, int | float) and rate > 0
            }

    def take(self, level: Level) -> None:
        if level.lane in self.bandwidth:
            number = self.number.setdefault(level.lane, len(self.number))
            self.changes.append(number, level.time, level.value)

    def copy(self) -> "Links":
        other = Links()
        other.bandwidth, other.number = self.bandwidth, dict(self.number)
        other.changes = self.changes.copy()
        return other

    def frame(self, now: float) -> dict[str, Any]:
        """Of the busiest links: names, bandwidth, bytes so far, highest share, and the mean share
        in each piece of the time up to `now`, a row a link."""
        names, found = list(self.number), list[tuple[float, float, float, np.ndarray]]()
        edges = np.linspace(0.0, max(now, 1e-12), PIECES + 1)
        link = self.changes["link"]
        order = np.argsort(link, kind="stable")
        cuts = np.searchsorted(link[order], np.arange(len(names) + 1))
        for number, name in enumerate(names):
            own = order[cuts[number] : cuts[number + 1]]
            time, use = self.changes["time"][own], self.changes["use"][own]
            until = np.append(time, max(now, float(time[-1])))
            carried = np.concatenate([[0.0], np.cumsum(use * np.diff(until))])
            at = np.interp(edges, until, carried, left=0.0)
            rate = self.bandwidth[name]
            mean = np.diff(at) / np.diff(edges) / rate
            found.append((float(carried[-1]), rate, float(use.max()) / rate, mean))

        def share(number: int) -> float:  # those alike but for rounding stay in order of name
            return float(f"{found[number][0] / found[number][1]:.9g}")

        named = {number: place for place, number in enumerate(in_order(names))}
        busiest = sorted(named, key=lambda n: (-share(n), named[n]))
        busiest = busiest[:MOST]
        rows = [found[number] for number in busiest]
        return {
            "links": [names[number] for number in busiest],
            "link_bytes": np.array([row[0] for row in rows], np.float64),
            "link_bandwidth": np.array([row[1] for row in rows], np.float64),
            "link_peak": np.array([row[2] for row in rows], np.float32),
            "link_use": np.array([row[3] for row in rows], np.float32).reshape(-1),
            "link_pieces": PIECES,
            "links_left": len(names) - len(busiest),
        }

    def figures(self, now: float) -> list[list[str]]:
        """The busiest link by its share of the time up to `now`."""
        if not self.number or now <= 0:
            return []
        shown = self.frame(now)
        share = float(shown["link_bytes"][0] / shown["link_bandwidth"][0] / now)
        return [[f"busiest link: {shown['links'][0]}", figure(share, "%")]]
