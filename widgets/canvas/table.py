"""Tables of a view as CSV text: all that it draws from, not what a browser was sent of it, under
the names that stand on its axes, with units.

In comes a frame of a fold; of each table in it comes a line with its name, a line of headings, and
a line for each row. Times are in seconds.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

MOST = 500_000  # rows of one table
Frame = dict[str, Any]
Column = tuple[str, str, str]  # heading, key of the frame, key of the names it holds places of
Table = tuple[str, tuple[Column, ...]]

TOKENS = (
    ("time (s)", "token_time", ""),
    ("probability (log)", "token_logprob", ""),
    ("accepted (0 or 1)", "token_accepted", ""),
)
TABLES: dict[str, tuple[Table, ...]] = {
    "request_lanes": (
        ("requests", (
            ("request", "names", ""), ("arrived (s)", "born", ""), ("ended (s)", "ended", ""),
            ("outcome", "outcome", "outcomes"), ("reason", "whys", ""),
        )),
        ("states of requests", (
            ("request", "stretch_lane", "names"), ("state", "stretch_state", "states"),
            ("from (s)", "stretch_start", ""), ("to (s)", "stretch_stop", ""),
        )),
        ("prefills", (
            ("request", "chunk_lane", "names"), ("first position", "chunk_first", ""),
            ("position after the last", "chunk_last", ""), ("from (s)", "chunk_start", ""),
            ("to (s)", "chunk_stop", ""),
        )),
        ("tokens", (("request", "tick_lane", "names"), ("time (s)", "tick_time", ""))),
        ("steps", (
            ("from (s)", "step_start", ""), ("to (s)", "step_stop", ""),
            ("tokens decoded", "step_decode", ""), ("tokens prefilled", "step_prefill", ""),
            ("rows of threads or frames", "step_threads", ""),
        )),
        ("caches sent", (
            ("request", "sent_lane", "names"), ("source", "sent_source", "places"),
            ("target", "sent_target", "places"), ("from (s)", "sent_start", ""),
            ("to (s)", "sent_stop", ""), ("size (B)", "sent_bytes", ""),
        )),
    ),
    "token_river": (
        ("tokens", (("request", "token_lane", "names"), *TOKENS, ("text", "text", "token_stop"))),
    ),
    "threads": (
        ("threads", (
            ("thread", "names", ""), ("began (s)", "born", ""), ("ended (s)", "ended", ""),
            ("outcome", "outcome", "outcomes"), ("reason", "whys", ""),
        )),
        ("tokens", (
            ("thread", "token_lane", "names"), *TOKENS,
            ("place on its path (tokens)", "token_place", ""), ("text", "text", "token_stop"),
        )),
        ("forks (0) and reads (1)", (
            ("kind", "edge_kind", ""), ("thread", "edge_to", "names"),
            ("of", "edge_source", "names"), ("time (s)", "edge_time", ""),
        )),
        ("blocks seen", (
            ("thread", "sight_row", "names"), ("block", "sight_block", "blocks"),
            ("time (s)", "sight_time", ""), ("position (-1: no longer seen)", "sight_value", ""),
        )),
    ),
    "schedule": (
        ("spans", (
            ("lane", "span_row", "names"), ("work", "span_kind", "kinds"),
            ("task", "span_task", "tasks"), ("from (s)", "span_start", ""),
            ("to (s)", "span_stop", ""), ("work done (FLOP)", "span_flops", ""),
            ("memory moved (B)", "span_bytes", ""), ("modelled (0 or 1)", "span_layer", ""),
        )),
        ("memory", (
            ("lane", "level_row", "names"), ("kind", "level_kind", "memory_kinds"),
            ("time (s)", "level_time", ""), ("held (B)", "level_value", ""),
        )),
        ("messages", (
            ("lane", "move_row", "names"), ("other end", "move_other", "names"),
            ("received (0 or 1)", "move_side", ""), ("from (s)", "move_start", ""),
            ("to (s)", "move_stop", ""), ("size (B)", "move_bytes", ""),
        )),
        ("gaps", (
            ("lane", "gap_row", "names"), ("cause", "gap_cause", "causes"),
            ("from (s)", "gap_start", ""), ("to (s)", "gap_stop", ""),
        )),
    ),
    "page_map": (
        ("pages at the cursor", (
            ("state (0 free, 1 used, 2 kept for a prefix)", "state", ""),
            ("owner", "owner", "owners"), ("sharers", "refs", ""), ("filled (tokens)", "fill", ""),
            ("idle (steps)", "age", ""),
        )),
        ("pages over time", (
            ("time (s)", "time", ""), ("used", "used", ""), ("cached", "cached", ""),
            ("free", "free", ""), ("on host", "host", ""),
        )),
    ),
    "topology": (
        ("sent up to the cursor", (
            ("from", "source", "names"), ("to", "target", "names"), ("size (B)", "bytes", ""),
            ("messages", "count", ""), ("under way (s)", "busy", ""),
        )),
        ("links", (
            ("link", "links", ""), ("size (B)", "link_bytes", ""),
            ("bandwidth (B/s)", "link_bandwidth", ""),
        )),
    ),
    "fleet": (
        ("replicas at the cursor", (
            ("replica", "names", ""), ("role", "roles", ""), ("running", "running", ""),
            ("waiting", "waiting", ""), ("served", "served", ""),
            ("pages used (share)", "used", ""), ("pages kept (share)", "cached", ""),
            ("prompt tokens found (share)", "hits", ""), ("at work (share)", "busy", ""),
            ("power (W)", "watts", ""), ("dead (0 or 1)", "dead", ""),
        )),
    ),
}  # fmt: skip
MARKS = (  # of the roofline: heading and what a mark is told by
    ("operation", "title"), ("shape", "shape"), ("intensity (FLOP/B)", "x"),
    ("speed (FLOP/s)", "y"), ("time (s)", "seconds"), ("least time (s)", "least"),
    ("lost (s)", "lost"), ("bound by", "roof"), ("modelled", "modelled"),
)  # fmt: skip


def frame_csv(view: str, frame: Frame) -> str:
    """The tables of a frame of that view; "" where it is known for none."""
    if view == "curves":
        return _curves(frame)
    if view == "roofline":
        rows = [[mark.get(key, "") for _, key in MARKS] for mark in frame["marks"]]
        return tables_text([("operations", [heading for heading, _ in MARKS], rows)])
    made = [_table(frame, title, columns) for title, columns in TABLES.get(view, ())]
    return tables_text([table for table in made if table is not None])


def _table(
    frame: Frame, title: str, columns: Sequence[Column]
) -> tuple[str, list[str], Iterable[Sequence[Any]]] | None:
    known = [column for column in columns if len(frame.get(column[1], ()))]
    if not known:
        return None
    values = [_values(frame, key, names) for _, key, names in known]
    return title, [heading for heading, _, _ in known], zip(*values, strict=False)


def _values(frame: Frame, key: str, names: str) -> list[Any]:
    """A column: as it is, or the names that it holds places of; of a text, its pieces."""
    values = frame[key]
    if key == "text":
        ends = frame[names].tolist()
        raw = values.tobytes()
        return [raw[a:b].decode("utf-8", "replace") for a, b in zip([0, *ends], ends, strict=False)]
    plain = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if not names:
        return ["" if value != value else value for value in plain]
    known = frame[names]
    return [known[at] if 0 <= at < len(known) else "" for at in plain]


def _curves(frame: Frame) -> str:
    def rows(panel: dict[str, Any]) -> Iterable[Sequence[Any]]:
        for series in panel["series"]:
            cut = slice(series["first"], series["first"] + series["count"])
            columns = [frame[key][cut].tolist() for key in ("x", "y", "low", "high")]
            for x, y, low, high in zip(*columns, strict=True):
                yield [series["name"], x, y, *("" if v != v else v for v in (low, high))]

    return tables_text(
        [
            (
                panel["name"].replace("_", " "),
                ["line", panel["x"] or "x", panel["y"] or "y", "from", "to"],
                rows(panel),
            )
            for panel in frame["panels"]
        ]
    )


def tables_text(tables: Iterable[tuple[str, Sequence[str], Iterable[Sequence[Any]]]]) -> str:
    """All tables, an empty line between two; of one beyond `MOST` rows the first, saying so."""
    parts = []
    for title, headings, rows in tables:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([title])
        writer.writerow(headings)
        for at, row in enumerate(rows):
            if at == MOST:
                writer.writerow([f"only the first {MOST:,} rows"])
                break
            writer.writerow([_safe(value) for value in row])
        parts.append(out.getvalue())
    return "\n".join(parts)


def _safe(value: Any) -> Any:
    """A text that a spreadsheet would compute is kept text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+@\t-" and value else value
