"""Designs as a Bokeh figure: goodput over cost, the Pareto front, a click opens a design's run."""

from typing import Any

from bokeh.models import ColumnDataSource, HoverTool, OpenURL, TapTool
from bokeh.plotting import figure as bokeh_figure

from widgets import theme
from widgets.figure.draw import TOOLS, paint
from workbench.fleet_search.play import Row
from workbench.fleet_search.search import Searched
from workbench.fleet_search.told import cost

WIDE, HIGH = 760, 420  # pixels
SMALL, LARGE = 8.0, 22.0  # of a mark, by its power


def pareto(
    found: Searched, links: dict[int, str], *, dark: bool = False, width: int = WIDE,
    height: int = HIGH,
) -> Any:  # fmt: skip
    """Goodput over cost of every design played; full where the objective is kept, hollow where it
    is not; larger for more watts. `links`: a run's address by its row's number."""
    price = "$" if found.asked.price else "device-hours"
    made = bokeh_figure(
        title="Goodput over cost: full marks keep the objective, larger ones draw more watts",
        width=width, height=height, tools=TOOLS, x_axis_type="log",
        x_axis_label=f"cost of a million answer tokens ({price})",
        y_axis_label="good requests a second",
    )  # fmt: skip
    played = [
        (number, row) for number, row in enumerate(found.rows)
        if not row.failed and row.figures["finished"]
    ]  # fmt: skip
    front = found.front()
    ink, hues = theme.scheme(dark), theme.hues(dark)
    if len(front) > 1:
        made.line(
            [found.cost(row) for row in front], [row.figures["goodput"] for row in front],
            line_color=ink.faint, line_dash="dashed", legend_label="Pareto front",
        )  # fmt: skip
    most = max((row.figures["watts"] for _, row in played), default=1.0) or 1.0
    groups = ((False, "prefill and decode together", hues[0]), (True, "in pools", hues[1]))
    marks = []
    for pooled, label, color in groups:
        own = [(n, row) for n, row in played if bool(row.design.prefill) == pooled]
        if own:
            source = ColumnDataSource(_columns(found, own, most, links))
            marks.append(made.scatter(
                "cost", "goodput", size="size", source=source,
                marker="square" if pooled else "circle", line_color=color, line_width=1.5,
                fill_color=color, fill_alpha="full", legend_label=label,
            ))  # fmt: skip
    made.add_tools(
        HoverTool(renderers=marks, visible=False, tooltips=[
            ("design", "@words"), ("goodput", "@said"), ("first token", "@ttft"),
            ("next ones", "@tpot"), ("power", "@watts"), ("cost", "@dollars"),
        ]),
        TapTool(renderers=marks, visible=False, callback=OpenURL(url="@link", same_tab=True)),
    )  # fmt: skip
    paint(made, dark)
    if made.legend:
        made.legend.location = "bottom_right"
    return made


def _columns(
    found: Searched, own: list[tuple[int, Row]], most: float, links: dict[int, str]
) -> dict[str, list[Any]]:
    rows = [row for _, row in own]
    return {
        "cost": [found.cost(row) for row in rows],
        "goodput": [row.figures["goodput"] for row in rows],
        "size": [SMALL + (LARGE - SMALL) * (row.figures["watts"] / most) ** 0.5 for row in rows],
        "full": [0.75 if row.meets(found.asked.slo) else 0.0 for row in rows],
        "words": [row.design.words for row in rows],
        "said": [f"{theme.figure(row.figures['goodput'])}/s" for row in rows],
        "ttft": [theme.figure(row.figures["ttft"], "s") for row in rows],
        "tpot": [theme.figure(row.figures["tpot"], "s") for row in rows],
        "watts": [theme.figure(row.figures["watts"], "W") for row in rows],
        "dollars": [cost(found, row) for row in rows],
        "link": [links.get(number, "") for number, _ in own],
    }
