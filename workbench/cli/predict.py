"""`workbench predict`: what a described run will take, with intervals, and where the time goes; and
`workbench check predictions`: how far that is from tables of measured runs."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import BadInput
from engine.core.names import counted
from engine.core.writing import write_text
from workbench.cli.output import check_place, print_json, print_table
from workbench.cli.run import changes

if TYPE_CHECKING:
    from workbench.predictions.prediction import Estimate, Prediction
    from workbench.predictions.score import Scored

ABOUT = """predict step time, throughput and memory of a described run

  workbench predict run.toml                         figures, where the time goes, what would help
  workbench predict run.toml --set cluster.devices=1024 --set split.tensor=8 --json
  workbench predict --set model=qwen3-32b --set cluster.devices=64
  workbench parallelism run.toml                     other splits of it
  workbench run megatron --described run.toml        its schedule, pass by pass

A training run (every line has a default):
  model = "llama-3.1-8b"          # or [architecture] with the fields of a config.json
  [cluster]                       # device, devices, node, network, adapters
  device = "h100-sxm"
  devices = 128
  [split]                         # tensor, pipeline, chunks, context, expert, shard
  shard = "parameters"
  [recipe]                        # sequence, microbatch, batch, dtype, recompute, attention …
  sequence = 8192

A serving run has an [engine] or a [load]; its [split] is tensor, pipeline, data, expert:
  model = "qwen3-30b-a3b"
  [cluster]                       # device, constants, profile
  device = "h200-sxm"
  [split]
  data = 2
  expert = true
  [engine]                        # name, running, tokens, page, memory, blocks, per_step
  name = "vllm"
  [load]                          # trace, requests, rate, speed, prompt, answer, seed
  requests = 10000
  rate = 20
"""

NAME = "predictions"
WORST = 10  # rows furthest off that are shown
HEAD = ("runs", "of", "rows", "mean", "median", "worst", "bias", "in interval")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="RUN.toml", nargs="?", help="the described run (default: what --set says)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KNOB=VALUE", help="turn a knob"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from workbench.predictions.kinds import predicted

    found = predicted(Path(args.file) if args.file else None, changes(args.set))
    if args.json:
        print_json(found.row())
    else:
        _print(found)
    return 0


def _print(found: "Prediction") -> None:
    from widgets.theme import figure

    print(f"{found.run}\n{found.sentence}\n")
    rows = [(name, *_cells(each)) for name, each in found.figures.items()]
    print_table(("modelled", "value", "nine in ten between", "and"), rows)
    total = sum(found.parts.values())
    print("\nwhere the time goes")
    parts = sorted(found.parts.items(), key=lambda each: -each[1])
    print_table(
        ("part", "seconds", "share", "without it"),
        [
            (part, figure(value, "s"), figure(value / total, "%"), _gain(found, part, total))
            for part, value in parts
            if value > 0
        ],
    )
    for name, value in found.hidden.items():
        print(f"hidden beside them: {figure(value, 's')} of {name}")
    if found.memory:
        held = ", ".join(f"{name} {figure(v, 'B')}" for name, v in found.memory.items() if v > 0)
        print(f"memory of the fullest device: {held}")
    for note in found.notes:
        print(f"note: {note}")
    for line in found.commands:
        print(f"start it: {line}")
    if found.schedule:
        print(f"its schedule, pass by pass: {found.schedule}")


def _cells(each: "Estimate") -> tuple[str, str, str]:
    from widgets.theme import figure

    return (
        figure(each.value, each.unit),
        figure(each.low, each.unit),
        figure(each.high, each.unit),
    )


def _gain(found: "Prediction", part: str, total: float) -> str:
    from widgets.theme import figure

    lifted = found.lifted.get(part)
    return "" if lifted is None else f"{figure(lifted, 's')}, {total / lifted:.2f}x as fast"


def check(paths: list[str], turned: list[str], as_json: bool, save: str | None = None) -> int:
    """Report on the runs of all tables; `turned`: knobs of what they do not tell. `save`: as
    Markdown, there."""
    from workbench.cost_model.check import reasons
    from workbench.cost_model.rows import LeftOut
    from workbench.predictions.score import Scored, report, worst
    from workbench.predictions.tables import scored

    if not paths:
        raise BadInput(f"{NAME}: give one table of runs or more: workbench check {NAME} TABLE.csv")
    check_place(save)
    found = [row for path in paths for row in scored(Path(path), changes(turned))]
    rows = [row for row in found if isinstance(row, Scored)]
    left_out = reasons(row for row in found if isinstance(row, LeftOut))
    if not rows:
        raise BadInput(f"{NAME}: no run that can be predicted ({'; '.join(left_out)})")
    lines, furthest = report(rows), worst(rows, WORST)
    if as_json:
        told = [row.row() for row in rows]
        print_json({"report": lines, "rows": told, "left_out": left_out})
    else:
        print_table(HEAD, [_line(line) for line in lines])
        _furthest(furthest)
        for why, count in left_out.items():
            print(f"left out: {counted(count, 'row')}, {why}")
    if save is not None:
        write_text(Path(save), _markdown(lines, paths, turned), "the table")
    return 0


def _line(line: Mapping[str, Any]) -> tuple[str, ...]:
    """Of a report, as `HEAD` names it."""
    return (
        line["kind"],
        line["group"],
        str(line["rows"]),
        *(f"{line[key]:.1%}" for key in ("mean_error", "median_error", "worst_error")),
        f"{line['bias']:+.1%}",
        f"{line['covered']:.0%}",
    )


def _markdown(lines: Sequence[Mapping[str, Any]], paths: Sequence[str], turned: list[str]) -> str:
    """The report as a file that says which command wrote it."""
    asked = " ".join([*(Path(path).name for path in paths), *(f"--set {each}" for each in turned)])
    rows = [HEAD, tuple("---" for _ in HEAD), *(_line(line) for line in lines)]
    return "\n".join(
        [
            f"Written by `workbench check {NAME} {asked} --save FILE`. Errors are predicted / "
            "measured − 1; the interval is to hold nine in ten.",
            "",
            *(f"| {' | '.join(row)} |" for row in rows),
            "",
        ]
    )


def _furthest(rows: Sequence["Scored"]) -> None:
    from widgets.theme import figure

    print(f"\nthe {len(rows)} furthest off; errors are predicted / measured − 1")
    print_table(
        ("error", "measured", "predicted", "nine in ten between", "and", "run"),
        [
            (
                f"{row.error:+.1%}",
                figure(row.measured, row.predicted.unit),
                *(
                    figure(each, row.predicted.unit)
                    for each in (row.predicted.value, row.predicted.low, row.predicted.high)
                ),
                f"{row.what} ({Path(row.where).name})",
            )
            for row in rows
        ],
    )
