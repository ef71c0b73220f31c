"""The start page: four doors for what a person brings, what can be tried, and the last runs."""

from html import escape
from math import prod
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.errors import BadInput
from engine.hardware.device import device, devices
from engine.models.kv import cache_spec
from engine.models.loading.find import find, public, shipped
from engine.models.parameters import all_parameters
from widgets.theme import figure
from workbench.catalogue import search
from workbench.findings_table import findings_of, recorded
from workbench.pages.catalogue import findings_line
from workbench.pages.runs import read_upload
from workbench.pages.runs_table import title
from workbench.pages.shelf import Shelf, study_of
from workbench.pages.shell import Shell, address, html
from workbench.vocabulary import words_of

HERE = "this machine"
MOST_DEVICES = 1 << 17
ROWS = 5  # systems, or runs, shown
TRIES = (
    ("study", {"slug": "hogwild"}, "Workers in one cache", "Threads that think together, each "
     "reading what the others write."),
    ("study", {"slug": "megatron"}, "A pipeline's bubble", "Schedules of 1F1B and zero bubble, "
     "pass by pass, on 1,536 devices."),
    ("study", {"slug": "batchllm"}, "A prefix computed once", "Requests that begin alike, and the "
     "pages they share."),
    ("roofline", {}, "What bounds this machine", "Its roofs, measured, and how near each operator "
     "comes."),
    ("study", {"slug": "streaming-diloco"}, "Training over a thin wire", "The same loss for a "
     "hundredth of the bytes?"),
    ("study", {"slug": "flash-attention-2"}, "Attention in tiles", "Who computes which rows, and "
     "how long workers wait."),
    ("study", {"slug": "large-language-monkeys"}, "One question, many answers", "What share of "
     "problems a hundred samples solve."),
    ("catalogue", {}, "All 157 systems", "What stands, what is checked, and what came out."),
)  # fmt: skip
CSS = """
.tries { display: grid; gap: 12px; grid-template-columns: repeat(4, 1fr); }
@media (max-width: 1100px) { .tries { grid-template-columns: repeat(2, 1fr); } }
.tries a { display: block; color: inherit; border: 1px solid var(--wb-line); border-radius: 10px;
  padding: 12px 14px; }
.tries a:hover { border-color: var(--wb-accent); text-decoration: none; }
.tries b { color: var(--wb-ink); font-weight: 600; } .tries span { color: var(--wb-faint);
  font-size: 13px; display: block; margin-top: 2px; }
ul { list-style: none; margin: 0; padding: 0; display: grid; gap: 4px; font-size: 13px; }
li span { color: var(--wb-faint); }
.wrong { color: var(--wb-wrong); font-size: 13px; } .hint { font-size: 13px; }
"""
DOOR = {"border": "1px solid var(--wb-line)", "border-radius": "12px", "padding": "14px 16px",
        "flex": "1 1 264px", "min-width": "250px", "max-width": "620px"}  # fmt: skip
WIDE: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (6, 0), "size": "small"}


def model_names() -> list[str]:
    """Names that can be opened without a folder: those shipped, then public architectures."""
    return [*shipped(), *public()]


def about_model(name: str, place: str) -> str:
    """A line on a model's size and, on a described device, the tokens its cache has room for.

    Raises BadInput for a name that stands for nothing, and where the weights do not fit.
    """
    config = find(name).config
    bits16 = 2 * sum(prod(each.shape) for each in all_parameters(config))
    token = cache_spec(config, "float16").bytes_per_token()
    size = f"{number(bits16 / 2)} parameters: {figure(bits16, 'B')} in 16 bits"
    line = f"{size}, {figure(token, 'B')} of KV cache a token"
    if place == HERE:
        return f"{line}."
    sheet = device(place)
    if bits16 > sheet.capacity:
        raise BadInput(
            f"{size}; one {sheet.name} has {figure(sheet.capacity, 'B')}: take a larger device, "
            "or split it over several on the Plan page"
        )
    room = (sheet.capacity - bits16) / token
    return f"{line}; beside the weights {sheet.name} has room for {room:,.0f} tokens."


def number(count: float) -> str:
    """A count as people write that of parameters: 70.6 B, 5.48 M."""
    unit, name = (1e9, "B") if count >= 1e9 else (1e6, "M")
    return f"{count / unit:.3g} {name}"


def model_address(name: str, place: str, dark: bool) -> str:
    """Where a model runs and is watched."""
    modelled = {"executor": "modelled", "executor.device": place, "dtype": "float16"}
    random = {} if name in shipped() or name not in public() else {"dtype": "bfloat16"}
    knobs = random if place == HERE else modelled
    return address("study", dark, slug="flover", model=name, **knobs)


def claims_list(text: str, dark: bool) -> str:
    """Systems whose paper says what `text` asks, with what their claims came to here."""
    rows, found = recorded(), search(text)
    if not found:
        return "<p class='hint'>No paper here has these words.</p>"
    called = "".join(
        f"<li><span>“{escape(word.said[0])}” is called here: {escape(word.here)}</span></li>"
        for word in words_of(text)
    )
    found.sort(key=lambda each: not each.built)
    lines = [
        f'<li><a href="{escape(address("study", dark, slug=each.slug))}">{escape(each.title)}</a> '
        f"<span>{escape(findings_line(findings_of(each.slug, rows)) or each.claim[:90])}</span>"
        "</li>" if each.built else
        f"<li>{escape(each.title)} <span>not built yet</span></li>"
        for each in found[:ROWS]
    ]  # fmt: skip
    more = f"<li><span>and {len(found) - ROWS} more</span></li>" if len(found) > ROWS else ""
    return f"<ul>{called}{''.join(lines)}{more}</ul>"


class StartPage:
    """Four doors, six places to try, the runs kept last."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.shell = shelf, Shell("Start", "")
        self._model()
        self._trace()
        self._cluster()
        self._claim()
        self.tries, self.runs = html("", CSS), html("", CSS)
        self.shell.on_dark(lambda _: self._paint())

    def _model(self) -> None:
        self.model = pmui.AutocompleteInput(
            label="Folder or name", value="stdlib-5m", options=model_names(), restrict=False,
            min_characters=0, case_sensitive=False, search_strategy="includes", **WIDE,
        )  # fmt: skip
        self.on = pmui.Select(label="On", value=HERE, options=[HERE, *devices()], **WIDE)
        self.run = _go("Run it and watch")
        self.fits = html("", CSS)
        for each in (self.model, self.on):
            each.param.watch(lambda _: self._paint(), "value")

    def _trace(self) -> None:
        self.file = pmui.FileInput(
            accept=".run,.json,.gz", label="Choose or drop a file", **{**WIDE, "size": "medium"}
        )
        self.read = html(TRACE, CSS)
        self.watch = _go("Watch it", visible=False)
        self.file.param.watch(self._opened, "value")

    def _opened(self, event: Any) -> None:
        if not event.new:
            return
        name = self.file.filename or "opened.run"
        try:
            kept = self.shelf.keep(read_upload(event.new, name), name)
        except BadInput as fault:
            self.read.object, self.watch.visible = _wrong(fault), False
            return
        events = len(self.shelf.get(kept).log)
        self.read.object = f"<p class='hint'>{escape(kept)}: {events:,} events.</p>"
        self.watch.param.update(href=address("runs", self.shell.dark, name=kept), visible=True)
        self._paint()

    def _cluster(self) -> None:
        self.device = pmui.Select(label="Device", value="h100-sxm", options=devices(), **WIDE)
        # A field of text: the steppers of a number's field have no names for a screen reader.
        self.count = pmui.TextInput(label="How many", value="64", **WIDE)
        self.plan, self.many = _go("Plan its training"), html("", CSS)
        self.device.param.watch(lambda _: self._paint(), "value")
        self.count.param.watch(lambda _: self._paint(), "value_input")

    def _claim(self) -> None:
        self.words = pmui.TextInput(
            label="Words, a system or an arXiv id", placeholder="zero bubble", **WIDE
        )
        self.found = html(CLAIM, CSS)
        self.words.param.watch(lambda _: self._paint(), "value_input")

    def _paint(self) -> None:
        """The addresses of all doors and what is said beneath them."""
        dark, name, place = self.shell.dark, (self.model.value or "").strip(), self.on.value
        try:
            self.fits.object = f"<p class='hint faint'>{escape(about_model(name, place))}</p>"
            self.run.param.update(href=model_address(name, place, dark), disabled=False)
        except BadInput as fault:
            self.fits.object, self.run.disabled = _wrong(fault), True
        try:
            cluster = {
                "devices": devices_of(self.count.value_input),
                "model.device": self.device.value,
            }
            self.plan.param.update(href=address("plan", dark, **cluster), disabled=False)
            self.many.object = ""
        except BadInput as fault:
            self.many.object, self.plan.disabled = _wrong(fault), True
        text = (self.words.value_input or "").strip()
        self.found.object = claims_list(text, dark) if text else CLAIM
        self.tries.object = "".join(("<div class='tries'>", *(
            f'<a href="{escape(address(where, dark, **query))}"><b>{escape(title)}</b>'
            f"<span>{escape(line)}</span></a>" for where, query, title, line in TRIES
        ), "</div>"))  # fmt: skip
        self.runs.object = self._last_runs(dark)

    def _last_runs(self, dark: bool) -> str:
        rows = [
            f'<li><a href="{escape(address("runs", dark, name=name))}">{escape(name)}</a> '
            f"<span>{escape(title(study_of(run)))} · {figure(run.log.duration, 's')}</span></li>"
            for name, run in list(reversed(self.shelf.runs.items()))[:ROWS]
        ]
        return f"<h2>Your last runs</h2><ul>{''.join(rows)}</ul>" if rows else ""

    def page(self) -> Any:
        doors = [
            _door("I have a model", self.model, self.on, self.fits, self.run),
            _door("I have a trace", self.read, self.file, self.watch),
            _door("I have a cluster", self.device, self.count, self.many, self.plan),
            _door("I have a claim", self.words, self.found),
        ]
        live = escape(address("live", self.shell.dark))
        head = html(
            "<h1>See what a parallel LLM system does, while it does it</h1><p class='faint'>Start "
            f'from what you have, or <a href="{live}">watch a model decode on this machine</a>.</p>'
        )
        self.shell.page.param.update(main_width=1560, app_bar_width="100%")
        self.shell.page.main = [
            pn.Column(
                head,
                pn.FlexBox(*doors, sizing_mode="stretch_width", gap="14px", margin=(18, 0)),
                html("<h2>Try</h2>", margin=(8, 0, 8, 0)),
                self.tries,
                pn.Column(self.runs, margin=(22, 0), sizing_mode="stretch_width"),
                sizing_mode="stretch_width",
                margin=(28, 40),
            )
        ]
        return self.shell.page


def _go(label: str, **options: Any) -> Any:
    look = {**WIDE, "margin": (10, 0, 0, 0), "size": "medium", "variant": "contained"}
    return pmui.Button(label=label, **look, **options)


def _door(title: str, *parts: Any) -> Any:
    return pn.Column(html(f"<h2>{escape(title)}</h2>"), *parts, styles=DOOR, margin=0)


def devices_of(text: str) -> int:
    """How many devices a person wrote. Raises BadInput."""
    text = text.strip().replace(",", "")
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_DEVICES):
        raise BadInput(f"How many devices: give 1 to {MOST_DEVICES:,}")
    return int(text[:9])


def _wrong(fault: BadInput) -> str:
    return f"<p class='wrong'>{escape(str(fault))}</p>"


TRACE = (
    "<p class='hint faint'>A run file, or a trace in the Chrome format: PyTorch's profiler, vLLM, "
    "Perfetto (.json, .json.gz).</p>"
)
CLAIM = (
    "<p class='hint faint'>What a paper says, and what came out here: zero bubble, KV cache, "
    "one-bit Adam, 2501.18512.</p>"
)
