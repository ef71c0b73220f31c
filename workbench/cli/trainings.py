"""`workbench check --trainings`: claims about taught models over several trainings of each."""

import argparse
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.paths import own_cache
from workbench.claim import Changes, Claim, Taught
from workbench.claim_text import written
from workbench.cli.output import print_json, print_table, say
from workbench.cli.run import changes
from workbench.finding import Figure
from workbench.study import Study
from workbench.trainings import record

FOLDER = "trainings"  # of this machine's own cache


def judge(studies: list[Study], args: argparse.Namespace) -> int:
    """Judge every claim asked for that rests on taught models; exit code 1 where one that is stated
    to hold is not borne out over trainings."""
    rows, refused = [], False
    folder = own_cache() / FOLDER
    asked = [(each, claim) for each in studies for claim in each.claims if claim.taught]
    for each, claim in asked:
        assert claim.taught is not None
        again = claim.taught.only(args.only)
        if not again.names:
            raise BadInput(f"--only {', '.join(args.only)}: no model of {each.slug} / {claim.id}")
        rows.append(_judged(each, claim, again, folder, changes(args.set), args))
        refused |= _refused(claim, rows[-1], not args.full)
        if not args.json:
            _print(claim, rows[-1])
    if args.json:
        print_json(rows)
    elif not rows:
        say("workbench: no claims about models taught here")
    if args.save:
        record.record(rows, Path(args.save))
    return int(refused)


def _judged(
    study: Study,
    claim: Claim,
    again: Taught,
    folder: Path,
    turned: Changes,
    args: argparse.Namespace,
) -> dict[str, Any]:
    from engine.recipes.trained_again import in_order, train_again
    from workbench.trainings.judged import OWN, judge_over

    lacks = ""
    if not args.kept:
        along = again.names
        try:
            for seed in range(OWN + 1, args.trainings):
                for name in in_order(along):
                    train_again(folder, name, seed, along, say, args.fresh)
        except BadInput as fault:
            lacks = str(fault)
    found = judge_over(
        study, claim, again, args.trainings, folder, turned, not args.full, args.seed
    )
    row = found.row()
    return {**row, "lacks": lacks or row["lacks"]}


def _refused(claim: Claim, row: dict[str, Any], fast: bool) -> bool:
    return row["figure"] is not None and claim.comes_out(fast) and not row["holds"]


def _print(claim: Claim, row: dict[str, Any]) -> None:
    from workbench.claim_text import trainings_line

    print(f"{row['slug']} / {row['claim']}  [{row['grade']}]  {', '.join(row['models'])}")
    said = trainings_line(claim, row) if row["figure"] else f"not tried: {row['lacks']}"
    print(f"       {said}")
    cells = []
    for each in row["trainings"]:
        figure = Figure.of_row(each["figure"]) if each["figure"] else None
        value = written(figure.value, figure.unit) if figure else ""
        yes = "holds" if each["holds"] else "no"
        cells.append((str(each["seed"]), value, each["finding"], yes, each["measured"]))
    if cells:
        print_table(("seed", "figure", "finding", "", "measured"), cells)
    print(flush=True)
