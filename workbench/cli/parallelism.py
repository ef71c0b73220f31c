"""`workbench parallelism`: how to split a model's training over a cluster, by time and memory."""

import argparse
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.names import counted
from workbench.cli.output import check_place, print_json, print_table, say
from workbench.cli.run import changes

ABOUT = """search how to split training: tensor, pipeline, context and data ranks

  workbench parallelism                                145B on 1,536 A100, batch 2304
  workbench parallelism --set devices=512 --set batch=1536 \\
      --set model.hidden=8192 --set model.layers=48 --set model.heads=64
  workbench parallelism --set model.device=h100-sxm --save splits.run
  workbench parallelism --set cluster=llama3-roce      sums of gradients over its shared links
  workbench parallelism --set architecture=llama-3.1-70b --set model.device=h100-sxm \\
      --set devices=256 --set batch=512                a model from its own shapes, with intervals
  workbench parallelism run.toml                       other splits of a run that is predicted
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="RUN.toml", nargs="?",
        help="a described training run, as `workbench predict` takes it; --set turns its knobs",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="KNOB=VALUE", help="turn a knob"
    )
    parser.add_argument("--save", metavar="FILE", help="keep the run in this file (*.run)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from engine.cluster.described_search import described
    from engine.cluster.parallelism import ParallelismConfig, reached, refuse_nothing, search
    from engine.cluster.parallelism_run import tell
    from engine.core.config import update
    from engine.core.file import save
    from engine.core.run import Run
    from engine.training.step_time.described import read

    if args.file:
        wanted = update(read(Path(args.file)), changes(args.set))
        return _described(wanted, ParallelismConfig().fill, args)
    config = update(ParallelismConfig(), changes(args.set))
    check_place(args.save)
    if config.architecture:
        return _described(described(config), config.fill, args)
    found = search(config)
    refuse_nothing(config, found)
    rows = [row(split, reached(config, split)) for split in found.front()]
    saved = None
    if args.save:
        told = Run.execute(lambda _, live: tell(config, found, live), config)
        saved = str(save(told.log, args.save))
    if args.json:
        about = {"counted": found.counted, "fitting": found.fitting, "grade": "modelled"}
        print_json({**about, "front": rows, "saved": saved})
        return 0
    said = f"{counted(found.counted, 'split')}, {found.fitting:,} of them in memory"
    say(f"{said}; the front of those on the virtual clock")
    head = ("step", "of peak", "memory", "bubble", "communication", *rows[0]["split"])
    print_table(head, [_cells(each) for each in rows])
    print(f"\nthe first in the schedule view:\n  {rows[0]['command']}")
    if saved:
        print(f"\nsaved {saved}; see it with `workbench open {saved}`")
    return 0


def _described(wanted: Any, fill: float, args: argparse.Namespace) -> int:
    """The quickest splits of a described run, predicted from its model's own shapes."""
    from engine.cluster.described_search import search_described
    from widgets.theme import figure
    from workbench.parallelism_split import predicted_knobs, schedule_command, settings, words_of

    if args.save:
        raise BadInput("--save: keeps searches of GPTs; of an architecture --json tells all")
    found = search_described(wanted, fill)
    rows = [
        {
            "seconds": step.seconds, "low": wide.low, "high": wide.high,
            "bytes": step.memory.total, "of_peak": step.of_peak,
            "bubble": step.parts["bubble"] / step.seconds,
            "communication": step.parts["collectives"] / step.seconds,
            "split": predicted_knobs(step.run),
        }
        for step, wide in found.steps
    ]  # fmt: skip
    if args.json:
        about = {"counted": found.counted, "fitting": found.fitting, "grade": "modelled"}
        print_json({**about, "steps": rows})
        return 0
    say(f"{counted(found.counted, 'split')}, {found.fitting:,} of them in memory")
    print_table(
        ("step", "nine in ten between", "and", "of peak", "memory", "bubble", "communication",
         "how it is split"),
        [
            (
                *(figure(each, "s") for each in (step.seconds, wide.low, wide.high)),
                figure(step.of_peak, "%"),
                figure(step.memory.total, "B"),
                figure(each["bubble"], "%"),
                figure(each["communication"], "%"),
                words_of(step.run),
            )
            for (step, wide), each in zip(found.steps, rows, strict=True)
        ],
    )  # fmt: skip
    print(f"\nthe first, part by part:\n  workbench predict {settings(rows[0]['split'])}")
    print(f"its schedule:\n  {schedule_command(found.steps[0][0].run)}")
    return 0


def row(split: Any, reached: float) -> dict[str, Any]:
    """One split: seconds, bytes, share of the peak, what was chosen, how to run it."""
    return {
        "seconds": split.seconds,
        "bytes": split.memory,
        "of_peak": reached,
        "bubble": split.bubble,
        "communication": split.communication,
        "split": split.words(),
        "command": command(split),
    }


def command(split: Any) -> str:
    """The command line that plays this split in the study of pipelines."""
    from workbench.parallelism_split import knobs_of, settings

    return f"workbench run megatron {settings(knobs_of(split))}"


def _cells(each: dict[str, Any]) -> tuple[str, ...]:
    from widgets.theme import figure

    figures = figure(each["seconds"], "s"), figure(each["of_peak"], "%"), figure(each["bytes"], "B")
    shares = figure(each["bubble"], "%"), figure(each["communication"], "%")
    return (*figures, *shares, *(str(value) for value in each["split"].values()))
