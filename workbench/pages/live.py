"""The first page: a model decoding on this machine, its cache filling, and a place to ask."""

from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.errors import BadInput
from engine.inference.requests.request import sampling
from widgets import theme
from widgets.stage.stage import Stage
from workbench.attention.page import LIVE, link
from workbench.live.live import LiveEngine
from workbench.pages import demo
from workbench.pages.conversations import Conversation, Conversations
from workbench.pages.frame.shell import Shell, html
from workbench.pages.shelf.shelf import Shelf
from workbench.pages.study_panel import views

VIEWS = ("page_map", "token_river", "request_lanes", "levels", "roofline")
LOOK = 0.1  # seconds between looks at the engine
BUSY = 5  # requests the page keeps going by itself
ANSWERS = 8  # answers shown
USUAL = {"length": "finished", "stop": "finished"}  # reasons that need no word of their own
TAIL = 420  # characters shown of each
PACES = {"slow": 10, "easy": 30, "full speed": 0}  # steps a second at most; 0: as fast as it goes
SPANS = {"last 30 s": 30, "2 min": 120, "all": 0}  # of time, in sight
CSS = """
.answer { border-top: 1px solid var(--wb-line); padding: 10px 0; display: grid; gap: 4px; }
.answer .who { display: flex; gap: 8px; align-items: center; font-size: 12px;
  color: var(--wb-faint); }
.answer .who span:last-child { margin-left: auto; }
.dot { width: 10px; height: 10px; border-radius: 3px; background: var(--hue); flex: none; }
.answer pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 12px;
  line-height: 1.45; max-height: 132px; overflow: hidden; display: flex; flex-direction: column;
  justify-content: flex-end; font-family: ui-monospace, 'SF Mono', Menlo, Consolas, monospace; }
.answer pre i { font-style: normal; color: var(--wb-faint); }
.now { font-size: 14px; } .now b { font-variant-numeric: tabular-nums; }
"""


def answer_card(talk: Conversation, dark: bool) -> str:
    """One answer: whose pages they are, how it stands, the end of its text."""
    colour = theme.hue(talk.thread, dark) if talk.thread else "transparent"
    ended = USUAL.get(talk.reason, talk.reason)
    state = talk.refused or ended or "writing"
    if not talk.reason and not talk.parts:
        state = "waiting"
    is_whole = bool(talk.thread) and talk.reason in ("stop", "length")
    way = f"<span>{link(LIVE, dark, talk.thread)}</span>" if is_whole else ""
    text = talk.text[-TAIL:]
    lead = talk.prompt[-120:] if len(text) < TAIL else ""
    return (
        f'<div class="answer" style="--hue:{colour}"><div class="who"><span class="dot"></span>'
        f"<span>{escape(talk.thread or 'asked')}</span><span>{escape(state)}</span>{way}</div>"
        f"<pre><span><i>{escape(lead)}</i>{escape(text)}</span></pre></div>"
    )


class LivePage:
    """Prompt and sampling left, views in the middle, answers right."""

    def __init__(self, live: LiveEngine, shelf: Shelf) -> None:
        self.live, self.shelf = live, shelf
        self.shell = Shell("Live engine", "live")
        self.talks = Conversations(live)
        self.stage = Stage(VIEWS)
        self.stage.watch(self.look, LOOK)
        self.prompts = demo.endless()
        self._shown: Any = None
        self._seen = -1
        self.now = html("", CSS, margin=(0, 0, 10, 0))
        # A pane each: what is written now does not take the focus from a way out of another.
        self.answers = [html("", CSS, visible=False) for _ in range(ANSWERS)]
        self.fault = html("", margin=(6, 0))
        self._make_controls()

    def _make_controls(self) -> None:
        wide = {"sizing_mode": "stretch_width", "margin": (6, 0), "size": "small"}
        self.prompt = pmui.TextAreaInput(
            label="Prompt", value="def fibonacci(n):\n", rows=4, **{**wide, "size": "medium"}
        )
        self.ask_button = pmui.Button(label="Ask", variant="contained", **wide)
        self.tokens = pmui.IntSlider(label="At most tokens", start=8, end=512, value=160, **wide)
        self.temperature = pmui.FloatSlider(
            label="Temperature", start=0.0, end=2.0, step=0.05, value=0.7, **wide
        )
        self.top_p = pmui.FloatSlider(
            label="Top p", start=0.05, end=1.0, step=0.05, value=0.95, **wide
        )
        self.samples = pmui.IntSlider(label="Samples (forks)", start=1, end=8, value=1, **wide)
        self.pace = pmui.RadioButtonGroup(
            options=PACES, value=30, sizing_mode="stretch_width", size="small", margin=(4, 0, 10, 0)
        )
        self.span = pmui.RadioButtonGroup(
            options=SPANS, value=30, sizing_mode="stretch_width", size="small", margin=(4, 0, 10, 0)
        )
        self.stage.recent(self.span.value)
        self.span.param.watch(lambda event: self.stage.recent(event.new), "value")
        self.busy = pmui.Switch(label="Keep it busy", value=True, margin=(4, 0))
        self.ask_button.on_click(
            lambda _: self._ask([self.prompt.value_input or self.prompt.value])
        )
        self.pace.param.watch(self._paced, "value")

    def _paced(self, event: Any) -> None:
        self.live.pace = event.new

    def _button(self, label: str, act: Any) -> Any:
        button = pmui.Button(
            label=label,
            variant="outlined",
            size="small",
            sizing_mode="stretch_width",
            margin=(4, 0),
        )
        button.on_click(lambda _: act())
        return button

    def _sidebar(self) -> Any:
        scenes = [
            self._button("One beginning, six endings", lambda: self._ask(demo.one_beginning())),
            self._button("More than fits", self._overfill),
            self._button("Stop all", self._stop),
            self._button("Forget the cache", self._forget),
            self._button("Measure this machine's roofs", self._measure),
        ]
        return pn.Column(
            self.prompt,
            self.ask_button,
            self.fault,
            self.samples,
            self.temperature,
            self.top_p,
            self.tokens,
            html("<h2>Try</h2>", margin=(14, 0, 2, 0)),
            *scenes,
            html("<h2>Pace</h2>", margin=(14, 0, 2, 0)),
            self.pace,
            html("<h2>Time in sight</h2>", margin=(4, 0, 2, 0)),
            self.span,
            self.busy,
            sizing_mode="stretch_width",
            margin=(16, 18),
        )

    def _ask(self, prompts: list[str], **changes: Any) -> None:
        wish = {
            "max_tokens": self.tokens.value,
            "temperature": self.temperature.value,
            "top_p": self.top_p.value,
            "n": self.samples.value,
            **changes,
        }
        try:
            for prompt in prompts:
                self.talks.ask(prompt, sampling(**wish))
            self.fault.object = ""
        except BadInput as fault:
            self.fault.object = f'<p style="color:var(--wb-wrong)">{escape(str(fault))}</p>'

    def _overfill(self) -> None:
        self._ask(demo.many(), max_tokens=200, n=1)

    def _stop(self) -> None:
        self.busy.value = False
        self.talks.stop()

    def _forget(self) -> None:
        if self.live.run is not None:
            self.live.run.tell(do="forget")

    def _measure(self) -> None:
        if self.live.run is not None:
            self.live.run.tell(do="measure")

    def look(self) -> None:
        """Follow the engine: its present run, the answers, and keep it busy where asked to."""
        run = self.live.run
        if run is not self._shown:
            self._shown = run
            self.stage.open(run)
        if not self.live.ready:
            line = self.live.failure or f"Reading {self.live.name} …"
            self.now.object = f'<p class="now">{escape(line)}</p>'
            return
        if self.busy.value and run is not None and run.state == "running":
            while self.talks.running < BUSY:
                self._ask([next(self.prompts)], n=1)
                if self.fault.object:
                    break
        if self._seen != self.talks.version:
            self._seen = self.talks.version
            self._tell()

    def _tell(self) -> None:
        latest = self.talks.latest(ANSWERS)
        cards = [answer_card(talk, self.shell.dark) for talk in latest]
        for place, pane in enumerate(self.answers):
            card = cards[place] if place < len(cards) else ""
            if pane.object != card:
                pane.param.update(object=card, visible=bool(card))
        facts = self.live.built.executor.facts if self.live.built else None
        name = f"{facts.model} on {facts.device}" if facts else self.live.name
        text = (
            f'<p class="now"><b>{self.talks.running}</b> answers are being written by '
            f"{escape(name)}. Each cell below is a page of its attention cache: keys and values of "
            f"{self.live.config.page_size} tokens, in the colour of the request that owns it.</p>"
        )
        if self.now.object != text:
            self.now.object = text

    def start(self) -> None:
        self.stage.start()

    def close(self, *_: Any) -> None:
        self.talks.stop()

    def page(self) -> Any:
        shell = self.shell
        self.live.pace = self.pace.value
        self.look()
        shell.on_dark(self.stage.dark)
        shell.page.param.update(
            sidebar_width=280,
            contextbar_width=320,
            contextbar_open=not shell.narrow,
            contextbar_variant="persistent",
        )
        head = html("<h1>A language model, decoding here and now</h1>", margin=(0, 0, 6, 0))
        shell.page.sidebar = [self._sidebar()]
        shell.page.contextbar = [
            pn.Column(
                html(
                    "<h2 tabindex='0'>What it writes</h2>", CSS
                ),  # the keyboard can scroll from it
                *self.answers,
                sizing_mode="stretch_width",
                margin=(16, 20),
            )
        ]
        shell.page.main = [
            pn.Column(
                head, self.now, *views(self.stage), sizing_mode="stretch_width", margin=(24, 28)
            )
        ]
        pn.state.onload(self.start)
        pn.state.on_session_destroyed(self.close)
        return shell.page
