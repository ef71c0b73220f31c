"""The predict page: what training or serving a described run will take, and where its time goes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any, cast

import panel as pn

from engine.core.config import Config
from engine.core.errors import BadInput
from engine.inference.serving_time.described import ServingRun
from engine.models.loading.public import public
from engine.training.step_time.described import TrainingRun
from widgets.knobs.knobs import Knobs
from workbench.pages.frame.addresses import config_of, query_of
from workbench.pages.frame.shell import Shell, address, asked_knobs, carry, html
from workbench.pages.sizing.layout import TABS, in_a_line, lay_out, tabs
from workbench.parallelism_split import planned_knobs, schedule_knobs
from workbench.predictions import as_html, serving, training
from workbench.predictions.prediction import Prediction


@dataclass(frozen=True)
class Kind:
    """One kind of run that the page predicts."""

    title: str
    start: Config
    predict: Callable[[Any], Prediction]
    about: str


KINDS = {
    "training": Kind(
        "What will its training take?", TrainingRun(), training.predict,
        "A step of training from the model's own shapes: operators' times by the device's "
        "constants, gathers and sums beside passes, the pipeline's schedule.",
    ),
    "serving": Kind(
        "What will its serving take?", ServingRun(), serving.predict,
        "Requests of a load or a trace played step by step through an engine's batches, its cache "
        "as large as the device's memory leaves it, operators' times by the device's constants.",
    ),
}  # fmt: skip
MODELLED = "Modelled; the bands are to hold nine in ten measurements."
CSS = as_html.CSS + TABS


class PredictPage:
    """Knobs of a run left, its prediction in the middle; the address says which kind of run."""

    def __init__(self) -> None:
        self.shell = Shell("Predict", "predict")
        knobs = asked_knobs()
        self.name = knobs.pop("kind", "training")
        if self.name not in KINDS:
            raise BadInput(f"predict: kind {self.name[:40]!r}; one of: {', '.join(KINDS)}")
        self.kind = KINDS[self.name]
        self.config: Config = config_of(self.kind.start, knobs)
        slug = "workbench predict" + ("" if self.name == "training" else f" --set kind={self.name}")
        self.knobs = Knobs(self, slug=slug, start=self.kind.start, keep=("model",))
        self.shown = html("", CSS)
        self._found: Prediction | None = None
        self.shell.on_dark(self._dark)

    def become(self, config: Config) -> None:
        """Predict another run; the newest one asked for is shown."""
        self.config = config
        carry(self.shell.dark, kind=self.name, **query_of(self.kind.start, config))
        pn.state.execute(self._predict)

    async def _predict(self) -> None:
        config = self.config
        if self._found is None:
            self.shown.object = "<p class='faint'>Playing it …</p>"
        try:
            found = await asyncio.to_thread(self.kind.predict, config)
            text = self._told(found)
        except Exception as fault:  # in a task nobody else hears of it: the page says so
            self._show(config, None, in_a_line(fault))
            return
        self._show(config, found, text)

    def _show(self, config: Config, found: Prediction | None, text: str) -> None:
        if config is self.config:
            self._found, self.shown.object = found, text

    def _told(self, found: Prediction) -> str:
        return f"{self._onward()}{as_html.told(found, self.shell.dark)}"

    def _onward(self) -> str:
        """The ways from a training run to its schedule and to other splits of it."""
        if not isinstance(self.config, TrainingRun):
            return ""
        schedule = address("study", self.shell.dark, slug="megatron", **schedule_knobs(self.config))
        links = [f'<a href="{escape(schedule)}">Watch its schedule →</a>']
        if not self.config.architecture:
            splits = address("plan", self.shell.dark, **planned_knobs(self.config))
            links.append(f'<a href="{escape(splits)}">Other splits of it →</a>')
        return f'<p class="onward">{" &nbsp; ".join(links)}</p>'

    def _dark(self, on: bool) -> None:
        self.knobs.dark(on)
        if self._found is not None:
            self.shown.object = self._told(self._found)

    def _devices(self) -> int:
        """How many of its device the run is on."""
        if isinstance(self.config, TrainingRun):
            return self.config.cluster.devices
        split = cast(ServingRun, self.config).split
        return split.tensor * split.pipeline * split.data

    def page(self) -> Any:
        config = cast(Any, self.config)
        count = self._devices()
        head = html(
            f"{tabs(self.name, config.model, config.cluster.device, count, self.shell.dark)}"
            f"<h1 tabindex='0'>{self.kind.title}</h1>"  # the keyboard can scroll from it
            f"<p class='faint'>{escape(self.kind.about)} {MODELLED}</p>"
            "<details class='faint small'><summary>Models</summary>"
            f"{escape(', '.join(public()))}. Any other: a TOML file for "
            "<code>workbench predict</code>.</details>",
            CSS,
        )
        return lay_out(
            self.shell, self.knobs, head, self.shown, begin=lambda: self.become(self.config)
        )
