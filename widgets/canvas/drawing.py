"""Canvas views in every host: one ES module each, fed packed frames.

The same module text (a view's `draw.js` with all it imports) runs in a Panel page, in a notebook
through anywidget, and in a static page that replays a run. In come frames of a fold;
out go choices of an owner and of a moment.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import param

from engine.core.errors import BadInput
from widgets.canvas import told
from widgets.canvas.packing import pack
from widgets.canvas.table import frame_csv
from widgets.page.bundle import bundle
from widgets.theme import FONT, hues, scheme, tones, wrong
from widgets.view import views

TRAITS = {  # what host and browser share: its type in Panel, its type in notebooks, its default
    "frame": ("Bytes", "Bytes", b""),
    "cursor": ("Number", "Float", 0.0),
    "chosen": ("String", "Unicode", ""),
    "is_dark": ("Boolean", "Bool", False),
    "options": ("Dict", "Dict", {}),
    "window": ("Dict", "Dict", {}),
    "seek": ("Number", "Float", -1.0),
    "reach": ("Number", "Float", 0.0),
    "recent": ("Number", "Float", 0.0),
    "figures": ("List", "List", []),
    "command": ("Dict", "Dict", {}),
    "table": ("Dict", "Dict", {}),
}
TOLD = ["chosen", "window", "seek", "command"]  # traits the browser changes
EXPORT = "export default"
HEIGHT = 560  # pixels, unless the host says otherwise

Frame = dict[str, Any]
Figures = list[list[str]]  # [what it is, figure] each
Reduce = Callable[[Frame, dict[str, Any]], Frame]  # frame, what the browser shows -> what to send


def script_of(view: str) -> Path:
    """The script that draws a view. Raises BadInput where it has none."""
    widgets = Path(__file__).parents[1]
    folders = (widgets / view, widgets / "views" / view)
    path = next((at for folder in folders if (at := folder / "draw.js").is_file()), None)
    if path is None:
        raise BadInput(f"view {view!r}: not drawn on a canvas (no draw.js)")
    return path


def source(view: str) -> str:
    """The ES module of a canvas view. Raises BadInput where it has none."""
    return bundle(script_of(view))


def explained(view: str) -> list[list[str]]:
    """How a view is to be read: [of what, in words] each; none of what is no view."""
    known = views().get(view)
    return [list(row) for row in known.explain] if known else []


def settings(height: int = HEIGHT) -> dict[str, Any]:
    """What every canvas view needs to know: the theme and its height in pixels."""
    schemes = {
        name: {
            **asdict(scheme(dark)),
            "hues": list(hues(dark)),
            "tones": list(tones(dark)),
            "wrong": wrong(dark),
        }
        for name, dark in (("light", False), ("dark", True))
    }
    return {"font": FONT, "height": height, **schemes}


@cache
def panel_class(view: str) -> type:
    """The Panel component of a view; one class each, so that its module loads once."""
    from widgets.page.component import Component

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
    browser said it shows (ranges, layer and head, pixels), {} before it has. `about`: more for the
    module's `options`.
    """

    by_cursor = False  # whether what is drawn of one and the same frame differs with the cursor

    def __init__(
        self,
        view: str,
        reduce: Reduce | None = None,
        height: int = HEIGHT,
        about: dict[str, Any] | None = None,
    ) -> None:
        self.view, self.height = view, height
        self.about = {"explain": explained((about or {}).get("name", view)), **(about or {})}
        self.reduce = reduce or (lambda frame, window: frame)
        self._state: dict[str, Any] = {
            "frame": b"",
            "cursor": 0.0,
            "chosen": "",
            "is_dark": False,
            "options": {**settings(height), **self.about, "hosted": True},
            "window": {},
            "reach": 0.0,
            "recent": 0.0,
            "figures": [],
        }
        self._frame: Frame | None = None
        self._hosts: list[Any] = []
        self._on_choose: list[Callable[[str], None]] = []
        self._on_seek: list[Callable[[float], None]] = []
        self._on_command: list[Callable[[dict[str, Any]], None]] = []
        self._on_window: list[Callable[[dict[str, Any]], None]] = []

    def show(self, frame: Frame, cursor: float) -> None:
        """Draw `frame`; a frame that is the very same object as last time is not sent again."""
        self.draw(frame, {"cursor": float(cursor)})

    def draw(self, frame: Frame, changes: dict[str, Any]) -> None:
        """Send `frame`, where it is another, and other traits with it."""
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

    def on_window(self, tell: Callable[[dict[str, Any]], None]) -> None:
        """Call `tell` with what the browser shows of this drawing, whenever that is another."""
        self._on_window.append(tell)

    def light(self, pages: Sequence[int]) -> None:
        """Outline pages of a cache, as another drawing chose them."""
        self._set({"options": {**self._state["options"], "lit": list(pages)}})

    def dark(self, on: bool) -> None:
        self._set({"is_dark": bool(on)})

    def reach(self, seconds: float) -> None:
        """Let time axes go on to there at least, so that runs can be compared by eye."""
        self._set({"reach": float(seconds)})

    def recent(self, seconds: float) -> None:
        """Let time axes show the last seconds before the cursor at first; all of it for 0."""
        self._set({"recent": float(seconds)})

    def magnify(self, scale: float) -> None:
        """Draw and write everything that many times as large, for a room."""
        self._set({"options": {**self._state["options"], "scale": float(scale)}})

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

    def still(self, frame: Frame, cursor: float) -> tuple[Frame, Figures]:
        """What a page without a server shows of `frame` at that cursor, and its figures beside it
        where the frame holds none."""
        return self.reduce(frame, {"static": True}), []

    def data(self) -> str:
        """All that this is drawn from, as CSV; "" where no table of it is known."""
        return frame_csv(self.view, self._frame) if self._frame is not None else ""

    def _set(self, changes: dict[str, Any]) -> None:
        changed = {k: v for k, v in changes.items() if self._state[k] != v}
        self._state.update(changed)
        self._send(changed)

    def _send(self, changed: dict[str, Any]) -> None:
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
            time = told.moment(value)
            for seek in self._on_seek if time >= 0 else ():
                seek(time)
        elif name == "command":
            command = told.command(value)
            if command.get("do") == "table":  # asks the view, not the run
                self._send({"table": {"turn": told.moment(value.get("turn")), "text": self.data()}})
                return
            for tell_run in self._on_command if command else ():
                tell_run(command)
        elif name == "chosen":
            self._heard_owner(told.owner(value))
        elif self._state["window"] != (window := told.window(value)):
            self._set({"window": window})
            for tell_window in self._on_window:
                tell_window(window)
            if self._frame is not None:
                self._set({"frame": pack(self.reduce(self._frame, window))})

    def _heard_owner(self, owner: str) -> None:
        if self._state["chosen"] != owner:
            self._set({"chosen": owner})
            for tell in self._on_choose:
                tell(owner)
