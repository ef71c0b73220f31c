"""Views without a server: an HTML fragment that holds frames and replays a run with a slider."""

import base64
import gzip
import zlib
from bisect import bisect_right
from functools import cache
from os.path import relpath
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.writing import json_text
from widgets.canvas.drawing import HEIGHT, CanvasDrawing, Figures, script_of, settings
from widgets.canvas.packing import body, pack
from widgets.fold import History, beneath
from widgets.page.bundle import bundled
from widgets.view import View

KEYFRAMES = 200  # moments a static page keeps of a view that changes with its cursor
STATIC_BYTES = 48 * 2**20  # unpacked bytes a static view may hold in the browser


def static_html(
    view: str,
    frames: list[bytes],
    times: list[float],
    *,
    duration: float | None = None,
    height: int = HEIGHT,
    is_dark: bool | None = None,
    bar: bool = True,
    about: dict[str, Any] | None = None,
    figures: list[tuple[float, Figures]] | None = None,
) -> str:
    """An HTML fragment with the view, its frames and a slider over `times` (seconds).

    Self-contained: no server, no network. Several fragments on one page share the time cursor and
    the chosen owner (events `workbench-cursor` and `workbench-chosen` on the document); `bar=False`
    leaves the slider to the page. `is_dark=None` follows the reader's system. `about`: more
    options of the view. `figures`: those from each moment on, of a view whose frames hold none.
    """
    bodies = [body(frame) for frame in frames]
    data = gzip.compress(_differences(frames, bodies), 6, mtime=0)
    payload = {
        "view": view,
        "times": times,
        "sizes": [len(frame) for frame in frames],
        "bodies": bodies,
        "data": base64.b64encode(data).decode(),
        "duration": times[-1] if duration is None else duration,
        "options": {**settings(height), **(about or {})},
        "figures": figures or [],
        "dark": is_dark,
        "bar": bar,
    }
    place = f"view-{view}-{zlib.crc32(data):08x}"
    call = f"replay(drawing, {json_text(place)}, {json_text(payload)});"
    text = f"{replaying(view)}\n{call}".replace("</", "<\\/")
    return f'<div id="{place}"></div>\n<script type="module">\n{text}\n</script>\n'


@cache
def replaying(view: str) -> str:
    """The script that draws the view as `drawing`, and what replays it in a page: `replay`."""
    here = Path(__file__).parent
    drawing = Path(relpath(script_of(view), here)).as_posix()
    imports = f'import drawing from "{drawing}";\nimport {{ replay }} from "./replay.js";\n'
    return bundled(imports, here)


def _differences(frames: list[bytes], bodies: list[int]) -> bytes:
    """Frames in a row, each one's arrays XORed with the frame before, so that they compress."""
    parts, before = [], np.zeros(0, np.uint8)
    for frame, start in zip(frames, bodies, strict=True):
        arrays = np.frombuffer(frame, np.uint8, offset=start)
        changed, same = arrays.copy(), min(len(arrays), len(before))
        changed[:same] ^= before[:same]
        parts += [frame[:start], changed.tobytes()]
        before = arrays
    return b"".join(parts)


def static_view(
    view: View,
    log: Log,
    *,
    height: int | None = None,
    is_dark: bool | None = None,
    bar: bool = True,
) -> str:
    """`view` of a finished run as an HTML fragment that replays it with a slider.

    A view that holds its whole history is one frame; any other keeps up to 200 moments, fewer where
    they would not fit the browser. Raises BadInput for a view that is not drawn on a canvas.
    """
    drawing = view.draw()
    if not isinstance(drawing, CanvasDrawing):
        raise BadInput(f"view {view.name!r}: not drawn on a canvas, so it has no replay")
    history, end = History(log, view.fold()), log.duration
    whole = history.at(end).frame()
    last = pack(drawing.still(whole, end)[0])
    times = [0.0]
    if not view.whole or drawing.by_cursor:
        times = moments(log, max(2, min(KEYFRAMES, STATIC_BYTES // max(len(last), 1))))
    frames: list[tuple[float, bytes]] = []
    figures: list[tuple[float, Figures]] = []
    for time in times if len(times) > 1 else [end]:
        frame, said = drawing.still(whole if view.whole else _told(history, time, whole), time)
        packed = pack(frame)
        if not frames or packed != frames[-1][1]:
            frames.append((time, packed))
        if said and (not figures or said != figures[-1][1]):
            figures.append((time, said))
    return static_html(
        drawing.view,
        [packed for _, packed in frames],
        [time for time, _ in frames],
        duration=end,
        height=drawing.height if height is None else height,
        is_dark=is_dark,
        bar=bar,
        about=drawing.about,
        figures=figures,
    )


def _told(history: History, time: float, end: dict[str, Any]) -> dict[str, Any]:
    """The frame at a moment; figures that count up say what they come to at the `end`."""
    state = history.at(time)
    frame = state.frame()
    return beneath(frame, state, end["figures"]) if state.totals or state.peaks else frame


def moments(log: Log, count: int) -> list[float]:
    """At most `count` times of the log's events, evenly spread, the first and last included."""
    times = np.unique([event.time for event in log])
    if len(times) == 0:
        return [0.0]
    wanted = np.linspace(times[0], times[-1], count)
    found = {float(times[max(0, bisect_right(times, w) - 1)]) for w in wanted}
    return sorted(found)
