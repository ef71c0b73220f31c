"""The trace's door: a run file, another tool's trace, a service's requests, a running server."""

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import panel_material_ui as pmui

from engine.core.errors import BadInput
from engine.core.names import counted
from engine.inference.workloads.traces.read import Trace, load
from widgets.theme import figure
from workbench.pages.doors.door import CSS, WIDE, door, hint, ways, wrong
from workbench.pages.frame.shell import address, html
from workbench.pages.shelf.file_field import FileField
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.shelf.uploads import NOTHING, UPLOAD, read_upload

REQUESTS = (".csv", ".jsonl")  # what lists requests and nothing else
ABOUT = (
    "A run file; a trace in the Chrome format (PyTorch's profiler, vLLM, Perfetto) or Nsight "
    "Systems' .sqlite; or a service's requests: Azure's or BurstGPT's CSV, Mooncake's JSON lines, "
    "ShareGPT, a result of vLLM's benchmark."
)


class TraceDoor:
    """A file, what it is, and where it leads; or the address of a server that is to be watched."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.file = FileField(
            accept=".run,.json,.gz,.sqlite,.csv,.jsonl", label="Choose or drop a file",
            max_file_size=UPLOAD, **{**WIDE, "size": "medium"},
        )  # fmt: skip
        self.read = html(hint(ABOUT), CSS)
        self.onward = html("", CSS)
        self.server = pmui.TextInput(
            label="or a running vLLM or SGLang server", placeholder="http://127.0.0.1:8000", **WIDE
        )
        self.attach = html("", CSS)
        self.server.param.watch(lambda _: self.paint(self.dark), "value_input")
        self._opened: str | Path | None = None  # a run's name, or a trace of requests
        self.dark = False
        self.file.param.watch(self._given, "value", onlychanged=False)  # sent twice, told twice

    def _given(self, event: Any) -> None:
        name = self.file.filename or "opened.run"
        self._opened = None
        try:
            if not event.new:
                raise BadInput(NOTHING)
            self._opened, self.read.object = opened(self.shelf, event.new, name)
        except BadInput as fault:
            self.read.object = wrong(fault)
        self.paint(self.dark)

    def paint(self, dark: bool) -> None:
        self.dark = dark
        run = self._opened if isinstance(self._opened, str) else ""
        trace = str(self._opened) if isinstance(self._opened, Path) else ""
        served = {"kind": "serving", "load.trace": trace, "load.requests": 0}
        asked = {"workload": "trace", "workload.file": trace}
        server = (self.server.value_input or self.server.value or "").strip()
        places = {"Watch it": address("runs", dark, name=run)} if run else {}
        if trace:
            places = {
                "Compare two schedulers on it": address("compare", dark, trace=trace),
                "Predict its serving": address("predict", dark, **served),
                "Search a fleet for it": address("design", dark, **asked),
            }
        self.onward.object = ways(places) if places else ""
        watched = {"Watch the server": address("attach", dark, url=server)}
        self.attach.object = ways(watched) if server else ""

    @property
    def card(self) -> Any:
        parts = self.read, self.file, self.onward, self.server, self.attach
        return door("I have a trace", *parts)


def opened(shelf: Shelf, data: bytes, name: str) -> tuple[str | Path, str]:
    """What a file holds: the name of its run on the shelf, or where its requests lie; and a line
    on it. Raises BadInput."""
    if name.lower().endswith(REQUESTS):
        return requests_of(shelf, data, name)
    try:
        kept = shelf.keep(read_upload(data, name), name)
    except BadInput as fault:
        if not name.lower().endswith(".json"):
            raise
        try:
            return requests_of(shelf, data, name)
        except BadInput:
            raise fault from None
    events = len(shelf.get(kept).log)
    return kept, f"<p class='hint'>{escape(kept)}: {events:,} events.</p>"


def requests_of(shelf: Shelf, data: bytes, name: str) -> tuple[Path, str]:
    """Where the requests of a file lie now, and a line on them. Raises BadInput."""
    path = shelf.keep_trace(data, name)
    try:
        trace = load(path)
    except BadInput as fault:
        path.unlink(missing_ok=True)
        raise BadInput(str(fault).replace(str(path), name)) from None
    return path, f"<p class='hint'>{escape(f'{name}: {about_requests(trace)}')}</p>"


def about_requests(trace: Trace) -> str:
    """A trace in a line: how many, how long, how long each."""
    found = trace.requests
    said = counted(len(found), "request")
    if trace.format == "sharegpt":
        return f"{said} of conversations, without arrivals."
    prompt, answer = (np.median([getattr(r, part) for r in found]) for part in ("prompt", "answer"))
    when = f" in {figure(found[-1].arrival, 's')}" if trace.timed else ", without arrivals"
    return f"{said}{when}; in the median {prompt:,.0f} tokens asked, {answer:,.0f} answered."
