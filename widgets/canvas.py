"""Canvas views in every host: one ES module each, fed packed frames.

The same module text (the shared scripts, then the view's own, `draw.js` last) runs in a Panel page,
in a notebook through anywidget, and in a static page that replays a run. In come frames of a fold;
out go choices of an owner and of a moment.
"""

import base64
import gzip
import json
import zlib
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import param

from engine.core.errors import BadInput
from engine.core.log import Log
from widgets.fold import History
from widgets.packing import body, pack
from widgets.theme import FONT, hues, scheme, wrong
from widgets.view import View

SHARED = (
    "common.js",
    "stage_style.js",
    "stage.js",
    "height.js",
    "svg_context.js",
    "snapshot.js",
    "timeline.js",
    "token_text.js",
    "reading.js",
    "chooser.js",
)
TRAITS = {  # what host and browser share: its type in Panel, its type in notebooks, its default
    "frame": ("Bytes", "Bytes", b""),
    "cursor": ("Number", "Float", 0.0),
    "chosen": ("String", "Unicode", ""),
    "is_dark": ("Boolean", "Bool", False),
    "options": ("Dict", "Dict", {}),
    "window": ("Dict", "Dict", {}),
    "seek": ("Number", "Float", -1.0),
    "reach": ("Number", "Float", 0.0),
    "command": ("Dict", "Dict", {}),
}
TOLD = ["chosen", "window", "seek", "command"]  # traits the browser changes
EXPORT = "export default"
HEIGHT = 560  # pixels, unless the host says otherwise
KEYFRAMES = 200  # moments a static page keeps of a view that folds to its cursor
STATIC_BYTES = 48 * 2**20  # unpacked bytes a static view may hold in the browser

Frame = dict[str, Any]
Reduce = Callable[[Frame, dict[str, Any]], Frame]  # frame, what the browser shows -> what to send


@cache
def source(view: str) -> str:
    """The ES module of a canvas view. Raises BadInput where it has none."""
    here = Path(__file__).parent
    own = sorted((here / view).glob("*.js"), key=lambda path: (path.name == "draw.js", path.name))
    if not own or own[-1].name != "draw.js":
        raise BadInput(f"view {view!r}: not drawn on a canvas (no draw.js)")
    return "\n".join(path.read_text() for path in [here / name for name in SHARED] + own)


def settings(height: int = HEIGHT) -> dict[str, Any]:
    """What every canvas view needs to know: the theme and its height in pixels."""
    schemes = {
        name: {**asdict(scheme(dark)), "hues": list(hues(dark)), "wrong": wrong(dark)}
        for name, dark in (("light", False), ("dark", True))
    }
    return {"font": FONT, "height": height, **schemes}


@cache
def panel_class(view: str) -> type:
    """The Panel component of a view; one class each, so that its module loads once."""
    from widgets.component import Component

    traits = {name: getattr(param, of)(default=at) for name, (of, _, at) in TRAITS.items()}
    name = view.title().replace("_", "") + "Canvas"
    return type(name, (Component,), {"_esm": source(view), **traits})


@cache
def notebook_class(view: str) -> type:
    """The anywidget of a view."""
    import anywidget
    import traitlets

    traits = {
        trait: getattr(traitlets, of)(at).tag(sync=True) for trait, (_, of, at) in TRAITS.items()
    }
    name = view.title().replace("_", "") + "Widget"
    return type(name, (anywidget.AnyWidget,), {"_esm": source(view), **traits})


class CanvasDrawing:
    """A `widgets.view.Drawing` on a canvas, in as many hosts at once as ask for it.

    `reduce(frame, window)` cuts a frame down to what the browser can show; `window` is what the
    browser said it shows (ranges, layer and head, pixels), {} before it has.
    """

    def __init__(self, view: str, reduce: Reduce | None = None, height: int = HEIGHT) -> None:
        self.view, self.height = view, height
        self.reduce = reduce or (lambda frame, window: frame)
        self._state: dict[str, Any] = {
            "frame": b"",
            "cursor": 0.0,
            "chosen": "",
            "is_dark": False,
            "options": settings(height),
            "window": {},
            "reach": 0.0,
        }
        self._frame: Frame | None = None
        self._hosts: list[Any] = []
        self._on_choose: list[Callable[[str], None]] = []
        self._on_seek: list[Callable[[float], None]] = []
        self._on_command: list[Callable[[dict[str, Any]], None]] = []

    def show(self, frame: Frame, cursor: float) -> None:
        """Draw `frame`; a frame that is the very same object as last time is not sent again."""
        changes: dict[str, Any] = {"cursor": float(cursor)}
        if frame is not self._frame:
            self._frame = frame
            changes["frame"] = pack(self.reduce(frame, self._state["window"]))
        self._set(changes)

    def choose(self, owner: str) -> None:
        self._set({"chosen": owner})

    def on_choose(self, tell: Callable[[str], None]) -> None:
        self._on_choose.append(tell)

    def on_seek(self, tell: Callable[[float], None]) -> None:
        """Call `tell` with seconds when a person picks a moment in this drawing."""
        self._on_seek.append(tell)

    def on_command(self, tell: Callable[[dict[str, Any]], None]) -> None:
        """Call `tell` with what a person told the run through this drawing."""
        self._on_command.append(tell)

    def dark(self, on: bool) -> None:
        self._set({"is_dark": bool(on)})

    def reach(self, seconds: float) -> None:
        """Let time axes go on to there at least, so that runs can be compared by eye."""
        self._set({"reach": float(seconds)})

    def __panel__(self) -> Any:
        host = panel_class(self.view)(**self._state, sizing_mode="stretch_width")
        host.param.watch(lambda e: self._heard(e.name, e.new), TOLD)
        self._hosts.append(host)
        return host

    def widget(self) -> Any:
        """The same drawing as an anywidget, for notebooks without Panel."""
        host = notebook_class(self.view)(**self._state)
        host.observe(lambda e: self._heard(e["name"], e["new"]), TOLD)
        self._hosts.append(host)
        return host

    def html(self) -> str:
        """What is shown now as an HTML fragment that needs nothing else."""
        frame, cursor = self._state["frame"], self._state["cursor"]
        return static_html(self.view, [frame], [cursor], height=self.height)

    def _set(self, changes: dict[str, Any]) -> None:
        changed = {k: v for k, v in changes.items() if self._state[k] != v}
        self._state.update(changed)
        for host in self._hosts if changed else ():
            if hasattr(host, "hold_sync"):
                with host.hold_sync():
                    for name, value in changed.items():
                        setattr(host, name, value)
            else:
                host.send(**changed)

    def _heard(self, name: str, value: Any) -> None:
        """The browser changed a trait; what came from `_set` itself changes nothing."""
        if name == "seek":
            for seek in self._on_seek if value >= 0 else ():
                seek(value)
        elif name == "command":
            for tell_run in self._on_command if value else ():
                tell_run({key: said for key, said in value.items() if key != "turn"})
        elif self._state[name] != value:
            self._set({name: value})
            if name == "chosen":
                for tell in self._on_choose:
                    tell(value)
            elif self._frame is not None:
                self._set({"frame": pack(self.reduce(self._frame, value))})


def static_html(
    view: str,
    frames: list[bytes],
    times: list[float],
    *,
    duration: float | None = None,
    height: int = HEIGHT,
    is_dark: bool | None = None,
    bar: bool = True,
) -> str:
    """An HTML fragment with the view, its frames and a slider over `times` (seconds).

    Self-contained: no server, no network. Several fragments on one page share the time cursor and
    the chosen owner (events `workbench-cursor` and `workbench-chosen` on the document); `bar=False`
    leaves the slider to the page. `is_dark=None` follows the reader's system.
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
        "options": settings(height),
        "dark": is_dark,
        "bar": bar,
    }
    place = f"view-{view}-{zlib.crc32(data):08x}"
    script = source(view).replace(EXPORT, "const drawing =")
    replay = (Path(__file__).parent / "replay.js").read_text()
    call = f"replay(drawing, {json.dumps(place)}, {json.dumps(payload)});"
    text = f"{script}\n{replay}\n{call}".replace("</", "<\\/")
    return f'<div id="{place}"></div>\n<script type="module">\n{text}\n</script>\n'


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
    history = History(log, view.fold())

    def packed(time: float) -> bytes:
        return pack(drawing.reduce(history.at(time).frame(), {"static": True}))

    end = log.duration
    last = packed(end)
    if view.whole:
        frames, times = [last], [0.0]
    else:
        count = max(2, min(KEYFRAMES, STATIC_BYTES // max(len(last), 1)))
        times = moments(log, count)
        frames = [packed(time) for time in times]
    return static_html(
        drawing.view,
        frames,
        times,
        duration=end,
        height=drawing.height if height is None else height,
        is_dark=is_dark,
        bar=bar,
    )


def moments(log: Log, count: int) -> list[float]:
    """At most `count` times of the log's events, evenly spread, the first and last included."""
    times = np.unique([event.time for event in log])
    if len(times) == 0:
        return [0.0]
    wanted = np.linspace(times[0], times[-1], count)
    found = {float(times[max(0, bisect_right(times, w) - 1)]) for w in wanted}
    return sorted(found)
