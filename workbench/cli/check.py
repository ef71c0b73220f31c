"""`workbench check`: do the claims of studies hold here, what do they say of the papers' figures,
and where do they stop?"""

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.paths import datasets
from workbench import findings_table, kept_maps
from workbench.catalogue import catalogue, study
from workbench.claim import SHORT, breaks_that_pass
from workbench.claim_text import (
    finding_line,
    in_words,
    machines_line,
    over_line,
    several_line,
    trainings_line,
    written,
)
from workbench.cli import cost, predict
from workbench.cli.output import check_place, follow, print_json, print_table, say, seed
from workbench.cli.run import changes
from workbench.finding import Figure
from workbench.findings_table import KINDS, elsewhere
from workbench.regime import Point
from workbench.study import Study, Verdict, check
from workbench.trainings import record

ABOUT = """judge the claims of studies on this machine, or the cost model by measured tables

  workbench check --all --json                      every claim: figure, interval, finding
  workbench check batchllm --regimes                where does it hold, and where does it stop?
  workbench check flover --breaks --full            does every break make its claim say no?
  workbench check hogwild --trainings 5             do claims hold of other trainings, too?

`workbench check cost-model TABLE.csv …` prints the cost model's error by operator and device,
`workbench check predictions TABLE.csv …` that of whole runs; --set tells what a table does not.
Exit code 0: all hold that are stated to; 1: one does not; 2: bad input."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slugs", nargs="*", metavar="SLUG", help="studies (default: all built)")
    parser.add_argument("--all", action="store_true", help="every built study")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--fast", action="store_true", help="small settings (default)")
    size.add_argument("--full", action="store_true", help="the settings the claims are stated for")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--regimes", action="store_true", help="the maps of where claims hold")
    what.add_argument(
        "--trainings", type=_trainings, metavar="N",
        help="claims about taught models over N trainings of each, the shipped one and N-1 more; "
        "those that are not kept on this machine yet are made first, which takes long",
    )  # fmt: skip
    what.add_argument("--breaks", action="store_true", help="run what must make each claim say no")
    parser.add_argument(
        "--claim", metavar="ID", help="this claim alone; or one map by its name, with --regimes"
    )
    parser.add_argument(
        "--long", action="store_true",
        help="of each claim its sentence, what was expected and found, and why (default of one)",
    )  # fmt: skip
    parser.add_argument(
        "--fresh", action="store_true", help="--regimes, --trainings: make again what is kept"
    )
    parser.add_argument(
        "--kept", action="store_true", help="--trainings: judge those kept here, train none"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="MODEL",
        help="--trainings: train this model again, leave the claim's others as they are shipped",
    )  # fmt: skip
    parser.add_argument(
        "--save", metavar="PLACE", help="record findings in a file, or --regimes in a folder"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="a knob")
    parser.add_argument("--seed", type=seed, default=0, help="the runs' seed (default 0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--constants", metavar="NAME", default="",
        help="cost-model: constants of datasets/cost or a TOML file (default: each device's own)",
    )  # fmt: skip
    parser.add_argument(
        "--held-out", action="store_true",
        help="cost-model: also fit the tables with parts and whole devices held out",
    )  # fmt: skip


def _trainings(text: str) -> int:
    """How many trainings: 2 to 64."""
    if not text.isdecimal() or not 2 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"{text!r}: give a number from 2 to 64")
    return int(text)


def run(args: argparse.Namespace) -> int:
    if args.slugs[:1] == [cost.NAME]:
        return cost.judge(args.slugs[1:], args.constants, args.held_out, args.json, args.save)
    if args.slugs[:1] == [predict.NAME]:
        return predict.check(args.slugs[1:], args.set, args.json, args.save)
    if args.constants or args.held_out:
        raise BadInput("--constants, --held-out: of `workbench check cost-model TABLE …` alone")
    if args.all and args.slugs:
        raise BadInput("--all: every study is meant; name none beside it")
    slugs = args.slugs or [entry.slug for entry in catalogue() if entry.built]
    studies = [_asked(study(slug), args.claim) for slug in slugs]
    if args.save is not None:
        _check_save(args, slugs)
    if (args.kept or args.only) and not args.trainings:
        raise BadInput("--kept, --only: of --trainings alone")
    if args.regimes:
        return _regimes(studies, args)
    if args.trainings:
        return _over_trainings(studies, args)
    if args.breaks:
        return _breaks(studies, args)
    verdicts: list[Verdict] = []
    is_long = args.long or sum(len(each.claims) for each in studies) == 1
    for each in studies:
        turned = changes(args.set)
        for verdict in check(each, turned, fast=not args.full, seed=args.seed):
            verdicts.append(verdict)
            if not args.json:
                _print(verdict, fast=not args.full, is_long=is_long)
    rows = [{**verdict.row(), "fast": not args.full} for verdict in verdicts]
    for row, verdict in zip(rows, verdicts, strict=True):
        over = record.of(row["slug"], row["claim"])
        row["over_trainings"] = over and {**over, "says": several_line(verdict.claim, over)}
        row["elsewhere"] = elsewhere(row["slug"], row["claim"], row["machine"])
    if args.json:
        print_json(rows)
    elif not verdicts:
        say("workbench: nothing to check")
    elif len(verdicts) > 1:
        found = Counter(map(findings_table.kind, rows))
        print()
        print_table(("finding", "claims"), [(name, str(found[name])) for name in KINDS])
        if not is_long:
            say("\neach claim's sentence and reason: --long, or --claim ID")
    if args.save:  # last: a full disk takes nobody's findings away
        findings_table.record(rows, Path(args.save))
    small = not args.full
    return 0 if all(v.outcome.holds or not v.claim.comes_out(small) for v in verdicts) else 1


def _check_save(args: argparse.Namespace, slugs: list[str]) -> None:
    """Raises BadInput where --save cannot hold what is asked for, before anything is run."""
    if args.breaks:
        raise BadInput("--save: keeps findings, or --regimes; what --breaks says is not recorded")
    place = Path(args.save)
    if args.regimes:
        for slug in slugs:
            kept_maps.saved(place, slug)
    else:
        check_place(args.save)
        findings_table.before(place, record.KEPT if args.trainings else findings_table.KEPT)
    own = record.RECORD if args.trainings else findings_table.RECORD
    shipped = datasets() / (kept_maps.SHIPPED if args.regimes else own)
    if (args.set or args.seed) and os.path.realpath(place) == os.path.realpath(shipped):
        raise BadInput(
            f"--save {args.save}: the shipped record is of the studies' own knobs and seed 0; "
            "leave --set and --seed out, or choose another place"
        )


def _asked(chosen: Study, claim: str | None) -> Study:
    """The study with that claim and its maps alone, or one map by its name with its claim. Raises
    BadInput where it has none such."""
    from dataclasses import replace

    if claim is None:
        return chosen
    regimes = tuple(each for each in chosen.regimes if claim in (each.claim, each.name))
    of = next((each.claim for each in regimes), claim)
    return replace(chosen, claims=(chosen.claim(of),), regimes=regimes)


def _print(verdict: Verdict, fast: bool, is_long: bool) -> None:
    claim, outcome = verdict.claim, verdict.outcome
    said = ""
    if outcome.holds and verdict.finding == "weaker":
        said = f", {SHORT}"
    elif not outcome.holds and not claim.comes_out(fast):
        said = ", as it states"
    holds = f"{'holds' if outcome.holds else 'NO':5}"
    print(f"{holds}  {verdict.slug} / {claim.id}  [{claim.grade}]{said}")
    if not is_long:
        figure = "" if outcome.figure is not None and claim.reported else f"{outcome.measured}; "
        print(f"       {figure}{finding_line(verdict, reason=False)}", flush=True)
        if outcome.caution:
            print(f"       {outcome.caution}", flush=True)
        return
    print(f"       {claim.sentence}")
    print(f"       expected {outcome.expected}; found {outcome.measured}")
    if outcome.caution:
        print(f"       {outcome.caution}")
    if claim.taught is not None:
        over = record.of(verdict.slug, claim.id)
        print(f"       interval {over_line(claim, over)}")
        if several := several_line(claim, over):
            print(f"       trainings: {several}")
    if there := machines_line(claim, elsewhere(verdict.slug, claim.id, verdict.machine)):
        print(f"       elsewhere: {there}")
    print(f"       the paper: {claim.paper}")
    print(f"       finding: {finding_line(verdict)}\n", flush=True)


def _regimes(studies: list[Study], args: argparse.Namespace) -> int:
    """Draw every map asked for; exit code 0 whatever they say: a map is not a promise."""
    from workbench.drawing import MapDrawing
    from workbench.regime_figure import said

    rows: list[dict[str, Any]] = []
    for each in studies:
        config, drawn = each.configured(changes(args.set)), []
        for regime in each.regimes:
            drawing = MapDrawing(each, regime, args.seed)
            going = drawing.ask(config, fast=not args.full, fresh=args.fresh)
            if going is not None:
                say(f"drawing {each.slug}: {regime.name} …")
                follow(going)
            assert drawing.map is not None
            drawn.append(drawing.map)
            says = said(regime, each.claim(regime.claim), drawing.map)
            rows.append({"slug": each.slug, "says": says, **drawing.map.row()})
            if not args.json:
                _print_map(rows[-1])
        if args.save and drawn:
            kept_maps.save(Path(args.save), each.slug, drawn)
    if args.json:
        print_json(rows)
    elif not rows:
        say("workbench: no maps of these studies")
    return 0


def _print_map(row: dict[str, Any]) -> None:
    print(f"{row['slug']} / {row['name']}\n  {row['says']}")
    cells = []
    for point in row["points"]:
        figure = Figure.of_row(point["figure"]) if point["figure"] else None
        came = in_words(figure) if figure else point["told"]
        holds = "holds" if Point.of_row(point).stands else "no"
        cells.append((point["line"], written(point["value"]), came, holds, point["finding"]))
    print_table(("", "value", "figure", "", "finding"), cells)
    print(flush=True)


def _over_trainings(studies: list[Study], args: argparse.Namespace) -> int:
    """Judge claims over trainings; exit code 1 where one stated to hold is not borne out."""
    from workbench.trainings.asked import over_trainings

    rows, refused = [], False
    for found in over_trainings(
        studies, args.trainings, changes(args.set), fast=not args.full, seed=args.seed,
        only=args.only, train=not args.kept, fresh=args.fresh, tell=say,
    ):  # fmt: skip
        row, claim = found.row(), found.claim
        said = trainings_line(claim, row) if row["figure"] else f"not tried: {row['lacks']}"
        rows.append({**row, "says": said})
        is_stated = row["figure"] is not None and claim.comes_out(not args.full)
        refused |= is_stated and not row["holds"]
        if not args.json:
            print(f"{row['slug']} / {claim.id}  [{claim.grade}]  {', '.join(row['models'])}")
            print(f"       {said}")
            for seed, outcome in found.judged:
                print(f"       seed {seed}: {outcome.measured}")
            print(flush=True)
        if args.save:  # each at once: whoever stops after hours keeps what was judged
            record.record([row], Path(args.save))
    if args.json:
        print_json(rows)
    elif not rows:
        say("workbench: no claims about models taught here")
    return int(refused)


def _breaks(studies: list[Study], args: argparse.Namespace) -> int:
    """Run every break; exit code 1 where a claim does not notice one."""
    rows = []
    for each in studies:
        run = each.run_config(args.seed)
        for claim in each.claims:
            passed = breaks_that_pass(claim, each.configured, run, not args.full)
            for one in claim.breaks:
                kind = "mechanism" if one.mechanism else "baseline"
                seen = "NOT NOTICED" if one in passed else "says no"
                if one not in claim.breaks_at(not args.full):
                    seen = "--full tells"
                changed = ", ".join(f"{path}={value}" for path, value in one.changes.items())
                rows.append((each.slug, claim.id, kind, seen, one.why or changed))
    if args.json:
        names = ("slug", "claim", "kind", "seen", "break")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table(("system", "claim", "kind", "", "break"), rows)
    return 1 if any(row[3] == "NOT NOTICED" for row in rows) else 0
