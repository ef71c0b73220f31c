"""The plan page: how to split a model's training over a cluster."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from typing import Any

import panel as pn

from engine.cluster.described_search import FoundSteps, described, search_described
from engine.cluster.parallelism import (
    Found,
    ParallelismConfig,
    Split,
    on_cluster,
    reached,
    refuse_nothing,
    search,
)
from engine.core.config import Config
from engine.core.names import counted
from engine.hardware.device import device
from widgets.knobs.knobs import Knobs
from widgets.theme import figure
from workbench.pages.frame.addresses import config_of, query_of
from workbench.pages.frame.shell import Shell, address, asked_knobs, carry, html
from workbench.pages.sizing.layout import in_a_line, lay_out
from workbench.parallelism_split import knobs_of, predicted_knobs, schedule_knobs, words_of
from workbench.predictions.training import DAY, TRILLION

ROWS = 10  # splits shown
BUBBLE = "bubble", "The share of the time in which pipeline ranks do no pass"
SPOKEN = (
    "communication",
    "The share of a step in which a rank waits for messages: between stages, among tensor and "
    "context ranks, the gradients' sum; what goes on beside passes is not counted",
)
HEAD = (
    ("step", ""), ("of peak", ""), ("memory of a device", ""), BUBBLE, SPOKEN,
    ("how it is split", ""), ("", ""),
)  # fmt: skip
CSS = """
:host { overflow-x: auto; }
table { border-collapse: collapse; font-size: 12px; width: 100%; max-width: 1200px; }
th { text-align: left; color: var(--wb-faint); font-weight: 600; padding: 6px 14px 6px 0; }
td { padding: 6px 14px 6px 0; border-top: 1px solid var(--wb-line); white-space: nowrap; }
td.words { white-space: normal; min-width: 200px; }
.bar { display: block; width: 110px; height: 10px; background: var(--wb-raised);
  border-radius: 3px; margin-bottom: 3px; overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--wb-accent); width: var(--share); }
.wrong { color: var(--wb-wrong); }
@media (max-width: 1000px) {
  th, td { padding-right: 9px; } td.words { min-width: 120px; } .bar { width: 76px; }
  td, td a { white-space: normal; } td.num, td:has(.bar) { white-space: nowrap; } }
"""


class PlanPage:
    """Knobs of what is trained on what left, the best splits in the middle."""

    def __init__(self) -> None:
        self.shell = Shell("Plan", "plan")
        self.config: Config = config_of(ParallelismConfig(), asked_knobs())
        self.knobs = Knobs(
            self, slug="workbench parallelism", start=ParallelismConfig(), keep=("cluster",)
        )
        self.shown = html("", CSS)
        self._wanted: Config | None = None
        self._found: Callable[[bool], str] | None = None  # what is shown, light or dark
        self.shell.on_dark(self._dark)

    def become(self, config: Config) -> None:
        """Search for the splits of another config; the newest one asked for is shown."""
        self.config = self._wanted = config
        carry(self.shell.dark, **query_of(ParallelismConfig(), config))
        pn.state.execute(self._search)

    async def _search(self) -> None:
        config = self._wanted
        if not isinstance(config, ParallelismConfig):
            return
        self.shown.object = "<p class='faint'>Counting the splits that divide and fit …</p>"
        try:
            self._found = await asyncio.to_thread(_searched, config)
            text = self._found(self.shell.dark)
        except Exception as fault:  # in a task nobody else hears of it: the page says so
            self._found, text = None, in_a_line(fault)
        if config is self._wanted:
            self.shown.object = text

    def _dark(self, on: bool) -> None:
        self.knobs.dark(on)
        if self._found is not None:
            self.shown.object = self._found(on)

    def page(self) -> Any:
        head = html(
            "<h1 tabindex='0'>How should its training be split?</h1>"
            "<p class='faint'>Tensor, pipeline, context and data ranks for a GPT on a cluster: all "
            "splits that divide and fit are estimated, "
            "the most promising ones played on the virtual clock, pass by pass. The model is a "
            "GPT's (as many keys as queries, an MLP of four times its width) or the architecture "
            "that is named, whose steps are predicted from its own shapes.</p>"
        )
        return lay_out(
            self.shell, self.knobs, head, self.shown, begin=lambda: self.become(self.config)
        )


def _searched(config: ParallelismConfig) -> Callable[[bool], str]:
    """What a search came to, as a page that is light or dark. Raises BadInput."""
    if config.architecture:
        return partial(described_table, search_described(described(config), config.fill))
    found = search(config)
    refuse_nothing(config, found)
    return partial(table, config, found)


def described_table(found: FoundSteps, dark: bool) -> str:
    """The quickest splits of an architecture with their intervals, each with its prediction."""
    rows = []
    for step, wide in found.steps[:ROWS]:
        shares = [step.parts[name] / step.seconds for name in ("bubble", "collectives")]
        link = address("predict", dark, **predicted_knobs(step.run))
        schedule = address("study", dark, slug="megatron", **schedule_knobs(step.run))
        capacity = step.run.cluster.sheet().capacity
        rows.append(
            f'<tr><td>{figure(step.seconds, "s")}<br><span class="faint">'
            f"{figure(wide.low, 's')} to {figure(wide.high, 's')}</span></td>"
            f'<td class="num">{figure(step.of_peak, "%")}</td>'
            f'<td class="num">{TRILLION / step.tokens_per_second / DAY:.1f} days</td>'
            f"<td>{_filled(step.memory.total, capacity)}</td>"
            + "".join(f'<td class="num">{figure(share, "%")}</td>' for share in shares)
            + f'<td class="words">{escape(words_of(step.run))}</td>'
            f'<td><a href="{escape(link)}">where its time goes</a><br>'
            f'<a href="{escape(schedule)}">watch its schedule</a></td></tr>'
        )
    head = (
        ("step", "below it, between which nine in ten measurements are to lie"), ("of peak", ""),
        ("trillion tokens in", ""), *HEAD[2:],
    )  # fmt: skip
    run = found.steps[0][0].run
    said = (
        f"{escape(run.model)} on {run.cluster.devices:,} {escape(run.cluster.sheet().name)}, "
        f"{run.batch:,} sequences of {run.recipe.sequence:,} tokens a step: "
        f"{counted(found.counted, 'split')} {'divides' if found.counted == 1 else 'divide'}, "
        f"{found.fitting:,} of them fit. The quickest, modelled:"
    )
    body = "".join(rows)
    return f"<p>{said}</p><table>{_heading(head)}<tbody>{body}</tbody></table>"


def table(config: ParallelismConfig, found: Found, dark: bool) -> str:
    """The quickest splits on the clock as an HTML table, each with the way to its schedule."""
    sheet = device(on_cluster(config).model.device)
    best = [split for split in found.splits if split.clocked][:ROWS]
    rows = "".join(_row(config, split, sheet.capacity, dark) for split in best)
    said = (
        f"{counted(found.counted, 'split')} {'divides' if found.counted == 1 else 'divide'} "
        f"{config.devices:,} devices, {found.fitting:,} of them fit {config.fill:.0%} of "
        f"{escape(sheet.name)}'s {figure(sheet.capacity, 'B')}. The quickest, modelled:"
    )
    return f"<p>{said}</p><table>{_heading(HEAD)}<tbody>{rows}</tbody></table>"


def _heading(columns: Sequence[tuple[str, str]]) -> str:
    """The names of the columns, each with what it means where that has to be said."""
    cells = "".join(
        f"<th scope='col' title='{escape(said, quote=True)}'>{escape(name)}</th>"
        for name, said in columns
    )
    return f"<thead><tr>{cells}</tr></thead>"


def _row(config: ParallelismConfig, split: Split, capacity: float, dark: bool) -> str:
    link = address("study", dark, slug="megatron", **knobs_of(split))
    told: Sequence[str] = (
        f'<td class="num">{figure(split.seconds, "s")}</td>',
        f'<td class="num">{figure(reached(config, split), "%")}</td>',
        f"<td>{_filled(split.memory, capacity)}</td>",
        f'<td class="num">{figure(split.bubble, "%")}</td>',
        f'<td class="num">{figure(split.communication, "%")}</td>',
        f'<td class="words">{escape(words(split))}</td>',
        f'<td><a href="{escape(link)}">watch its schedule</a></td>',
    )
    return f"<tr>{''.join(told)}</tr>"


def _filled(size: float, capacity: float) -> str:
    """A bar of how full a device is, and in figures."""
    share = size / capacity
    bar = (
        f'<span class="bar" style="--share:{min(share, 1):.1%}" role="presentation"><i></i></span>'
    )
    return f"{bar}{figure(size, 'B')}, {figure(share, '%')}"


def words(split: Split) -> str:
    """How it is split, as people say it."""
    passes = split.passes
    sizes = (
        ("tensor", passes.tensor),
        ("pipeline", split.pipeline),
        ("context", passes.context),
        ("data", passes.data),
    )
    parts = [f"{name} {size}" for name, size in sizes if size > 1]
    chunks = f", {split.chunks} chunks a rank" if split.chunks > 1 else ""
    kept = {"none": "all kept", "selective": "attention recomputed", "full": "all recomputed"}
    return (
        f"{' × '.join(parts) or 'one device'}; microbatches of {passes.microbatch}{chunks}; "
        f"activations: {kept[passes.recompute]}"
    )
