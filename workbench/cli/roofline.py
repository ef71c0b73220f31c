"""`workbench roofline`: what bounds each kernel on this machine, and how close it comes."""

import argparse

from workbench.cli.output import check_place, print_json, print_table, say
from workbench.cli.run import changes

ABOUT = """run kernels under this machine's measured roofs

  workbench roofline                                   every operator at its own sizes
  workbench roofline --set operator=matmul --set operator.rows=1 --set dtype=bfloat16
  workbench roofline --save now.run                    see it with `workbench open now.run`
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="KNOB=VALUE", help="turn a knob"
    )
    parser.add_argument("--measure", action="store_true", help="measure this machine again first")
    parser.add_argument("--save", metavar="FILE", help="keep the run in this file (*.run)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from engine.core.config import update
    from engine.core.file import save
    from engine.core.run import Run
    from engine.hardware.measure import measure
    from engine.kernels.experiments.sweep import Sweep
    from engine.kernels.experiments.sweep import run as sweep
    from widgets.views.roofline.fold import RooflineFold

    config = update(Sweep(), changes(args.set))
    check_place(args.save)
    if args.measure:
        measure(refresh=True, say=say)
    say("running kernels …")
    log = Run.execute(sweep, config, study="roofline").log
    fold = RooflineFold()
    for event in log:
        fold.add(event)
    frame = fold.frame()
    saved = str(save(log, args.save)) if args.save else None
    if args.json:
        print_json({"roofs": fold.roofs, "marks": frame["marks"], "saved": saved})
        return 0
    print_table(("roof", "device", "value", "grade"), roof_rows(fold.roofs))
    print()
    print_table(("kernel", "shape", "time", "what binds it"), mark_rows(frame["marks"]))
    if frame["note"]:
        print(f"\n{frame['note']}")
    if saved:
        print(f"\nsaved {saved}; see it with `workbench open {saved}`")
    return 0


def roof_rows(roofs: list[dict[str, object]]) -> list[tuple[str, ...]]:
    """Name, device, value with its unit, grade."""
    from widgets.theme import figure

    units = {"bandwidth": "B/s", "compute": "FLOP/s"}
    found = []
    for roof in roofs:
        value = figure(float(str(roof["value"])), units.get(str(roof["kind"]), "")).strip()
        if str(roof["kind"]) not in units:
            value += "/s"
        found.append((str(roof["name"]), str(roof["device"]), value, str(roof["grade"])))
    return found


def mark_rows(marks: list[dict[str, object]]) -> list[tuple[str, ...]]:
    """Kernels by the time they lose, then those modelled on another device."""
    from widgets.theme import figure

    def order(mark: dict[str, object]) -> tuple[bool, float]:
        return bool(mark["ghost"]), -float(str(mark["lost"]))

    found = []
    for mark in sorted(marks, key=order):
        time = figure(float(str(mark["each"])), "s") + (" (modelled)" if mark["modelled"] else "")
        words = mark["words"]
        assert isinstance(words, list)
        found.append((str(mark["title"]), str(mark["detail"]), time, str(words[1])))
    return found
