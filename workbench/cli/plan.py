"""`workbench plan`: a pipeline's plan as text or PyTorch's schedule file, made or read, checked."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import BadInput
from engine.core.limits import check as weigh
from engine.core.limits import limits, read_text
from engine.core.names import counted
from engine.core.writing import json_text, write_text
from workbench.cli.output import check_place, print_json, say
from workbench.cli.run import changes

if TYPE_CHECKING:
    from engine.training.plan.actions import Plan
    from engine.training.plan.times import Costs

ABOUT = """make, check or convert a pipeline's plan: who does what in what order

  workbench plan zb_v --set ranks=4 --set microbatches=8    a schedule's plan, a line a rank
  workbench plan 1f1b --transfers --as csv --out plan.csv   as PyTorch's pipelining reads it
  workbench plan --read plan.csv                            check one (text, CSV, JSON), print it
  pbpaste | workbench plan --read -                         the same, pasted"""
FORMS = ("text", "csv", "json")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("schedule", nargs="?", metavar="SCHEDULE", help="such as 1f1b or zb_v")
    parser.add_argument(
        "--read", metavar="FILE", help="a plan as text, CSV or JSON; - for standard input"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE",
                        help="ranks, microbatches, schedule.chunks, passes.forward …")  # fmt: skip
    parser.add_argument("--limit", type=float, metavar="N",
                        help="activations that a rank may hold, in microbatches")  # fmt: skip
    parser.add_argument("--transfers", action="store_true", help="write sends and receives out")
    parser.add_argument("--as", dest="form", choices=FORMS, default="text", help="how to print it")
    parser.add_argument("--out", metavar="FILE", help="write it there instead")


def run(args: argparse.Namespace) -> int:
    from engine.training.plan.check import check
    from engine.training.plan.csv_file import to_csv

    if (args.schedule is None) == (args.read is None):
        raise BadInput("plan: give a schedule, or --read FILE; one of the two")
    check_place(args.out)
    plan, costs = read_plan(args.read) if args.read else _made(args)
    faults = check(plan, limit=args.limit)
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise BadInput(f"{faults[0]}{more}")
    if args.transfers:
        plan = _lowered(plan, costs)
    facts = _facts(plan, costs)
    if args.form == "json":
        _write(args.out, {**facts, "plan": str(plan).splitlines()})
    else:
        _write(args.out, to_csv(plan) if args.form == "csv" else f"{plan}\n")
        say(_sentence(facts))
    return 0


def _made(args: argparse.Namespace) -> "tuple[Plan, Costs]":
    from engine.core.config import update
    from engine.training.pipeline.config import PipelineConfig

    limit = {} if args.limit is None else {"memory_limit": args.limit}
    turned = {"schedule": args.schedule, **limit, **changes(args.set)}
    job = update(PipelineConfig(), turned).job()
    return job.plan, job.costs


def read_plan(name: str) -> "tuple[Plan, Costs]":
    """The plan in a file, or on standard input for -; each pass costs one. Raises BadInput."""
    from engine.training.plan.actions import read
    from engine.training.plan.csv_file import from_csv
    from engine.training.plan.times import Costs

    try:
        if name == "-":
            text = sys.stdin.read(limits().text_bytes + 1)
            weigh("-", "characters", len(text), "text_bytes")
        else:
            text = read_text(Path(name))
    except (OSError, UnicodeDecodeError) as fault:
        raise BadInput(f"{name}: cannot be read ({fault}); give a plan's file, or -") from None
    if text.lstrip().startswith("{"):
        plan = read("\n".join(_lines(name, text)))
    else:
        plan = from_csv(text) if "," in text else read(text.replace(";", "\n"))
    return plan, Costs.even(plan)


def _lines(name: str, text: str) -> list[str]:
    """The plan in what `--as json` printed."""
    import json

    try:
        found = json.loads(text).get("plan")
    except (json.JSONDecodeError, RecursionError) as fault:
        raise BadInput(f"{name}: no JSON ({fault}); give what --as json prints") from None
    if not isinstance(found, list) or not all(isinstance(line, str) for line in found):
        raise BadInput(f'{name}: no "plan" in it, a list of lines; give what --as json prints')
    return found


def _lowered(plan: "Plan", costs: "Costs") -> "Plan":
    from engine.training.plan.times import timed
    from engine.training.plan.transfers import lower

    times = timed(plan, costs)
    return lower(plan, times.start, times.stop)


def _facts(plan: "Plan", costs: "Costs") -> dict[str, Any]:
    """What there is to say of a plan that can be run."""
    import numpy as np

    from engine.training.plan.actions import KINDS
    from engine.training.plan.bubble import PASSES, bubble
    from engine.training.plan.columns import CODES
    from engine.training.plan.memory import peaks
    from engine.training.plan.times import timed

    times = timed(plan, costs)
    passes = np.isin(times.columns.kind, [CODES[KINDS[name]] for name in PASSES])
    found = bubble(times.columns.rank[passes], times.start[passes], times.stop[passes])
    return {
        "ranks": len(plan.ranks),
        "stages": plan.stages,
        "microbatches": plan.microbatches,
        "actions": len(plan),
        "bubble_of_total": found.of_total,
        "bubble_of_ideal": found.of_ideal,
        "activations": float(peaks(times.columns, max(1, plan.chunks)).max()),
    }


def _sentence(facts: dict[str, Any]) -> str:
    words = {
        "ranks": counted(facts["ranks"], "rank"),
        "stages": counted(facts["stages"], "stage"),
        "microbatches": counted(facts["microbatches"], "microbatch", "microbatches"),
        "held": "activation" if facts["activations"] == 1 else "activations",
    }
    return (
        "this plan can be run: {ranks}, {stages}, {microbatches}; bubble {bubble_of_total:.4f} of "
        "the total time, {bubble_of_ideal:.4f} of the ideal; at most {activations:g} {held} on a "
        "rank"
    ).format(**{**facts, **words})


def _write(place: str | None, what: Any) -> None:
    if place is None:
        if isinstance(what, str):
            print(what, end="")
        else:
            print_json(what)
        return
    text = what if isinstance(what, str) else json_text(what, indent=2) + "\n"
    write_text(Path(place), text, "the plan")
