"""`workbench catalogue`: every system, its paper, and what its claims found."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from engine.core.errors import BadInput
from engine.core.names import counted
from engine.core.writing import written
from workbench.catalogue import Entry, families, search, study
from workbench.cli.output import follow, print_json, print_table, say
from workbench.findings_table import HEAD, by_family, findings_of, put
from workbench.trainings import record

ABOUT = "list every system, with its paper and whether it is built"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--search", default="", metavar="WORDS", help="only rows with these words")
    parser.add_argument("--family", default="", choices=families(), help="only this family")
    parser.add_argument("--built", action="store_true", help="only what is built")
    parser.add_argument("--findings", action="store_true", help="claims by family and finding")
    parser.add_argument(
        "--markdown", metavar="FILE",
        help="--findings, --predicted: write the table between its marks there",
    )  # fmt: skip
    parser.add_argument(
        "--compared", action="store_true", help="what claims are held against, where that is told"
    )
    parser.add_argument(
        "--predicted", action="store_true", help="what is predicted how well, and on what"
    )
    parser.add_argument(
        "--pictures", metavar="FOLDER",
        help="run each that is built, and keep a small picture of its first view there",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    rows = record.headlines()
    if args.markdown and args.findings == args.predicted:
        raise BadInput("--markdown: of one table alone; add --findings or --predicted")
    if args.markdown and not Path(args.markdown).is_file():
        raise BadInput(f"--markdown {args.markdown!r}: no such file")
    if args.predicted:
        return _predicted(args)
    if args.findings:
        return _findings(rows, args)
    found = search(args.search, args.family, True if args.built or args.pictures else None)
    if args.pictures:
        return _pictures([entry.slug for entry in found], Path(args.pictures))
    if args.compared:
        return _compared(found, args.json)
    if args.json:
        print_json([{**e.row(), "findings": dict(findings_of(e.slug, rows))} for e in found])
    elif found:
        built = {True: "built", False: "not built yet"}
        lines = [(each.slug, each.family, built[each.built], each.title) for each in found]
        print_table(("slug", "family", "", "system"), lines)
        print(f"\n{counted(len(found), 'system')}, {sum(e.built for e in found)} built")
    else:
        print("nothing in the catalogue has these words")
    return 0


def _pictures(slugs: Sequence[str], folder: Path) -> int:
    """Run those studies one after another and write `folder`/SLUG.png of each; exit code 0."""
    from engine.core.run import Run
    from workbench.notebook.pictures import miniature

    if folder.exists() and not folder.is_dir():
        raise BadInput(f"--pictures {folder}: is a file; give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    for number, slug in enumerate(slugs, start=1):
        say(f"{number} of {len(slugs)}  {slug}")
        chosen = study(slug)
        done = follow(Run.start(chosen.driver, chosen.configured({}, ""), seed=0, study=slug))
        drawn = miniature(done.log, chosen.views[0])
        with written(folder / f"{slug}.png", "the picture") as part:
            part.write_bytes(drawn)
    return 0


def _findings(rows: list[dict[str, object]], args: argparse.Namespace) -> int:
    table = by_family(rows)
    if args.markdown:
        put(Path(args.markdown), rows, "\n\n".join(record.notes()))
    elif args.json:
        print_json([dict(zip(HEAD, line, strict=True)) for line in table])
    else:
        print_table(HEAD, table)
        for note in record.notes():
            print(f"\n{note}")
    return 0


def _compared(found: list[Entry], as_json: bool) -> int:
    """Rivals, workloads and recorded maps of claims that say what they are held against."""
    from workbench.claim_text import held_line
    from workbench.kept_maps import shipped

    told = [
        (entry.slug, claim, claim.held)
        for entry in found
        if entry.built
        for claim in study(entry.slug).claims
        if claim.held is not None
    ]
    rows = [
        {
            "system": slug,
            "claim": claim.id,
            **asdict(held),
            "maps": [name for name in shipped(slug) if name.startswith(f"{claim.id} over ")],
        }
        for slug, claim, held in told
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(
            ("system", "claim", "maps", "held against"),
            [
                (slug, claim.id, str(len(row["maps"])), held_line(held))
                for row, (slug, claim, held) in zip(rows, told, strict=True)
            ],
        )
    return 0


def _predicted(args: argparse.Namespace) -> int:
    from workbench.predictions import how_well

    if args.markdown:
        how_well.put(Path(args.markdown))
    elif args.json:
        print_json([dict(zip(how_well.HEAD, line, strict=True)) for line in how_well.rows()])
    else:
        print_table(how_well.HEAD, how_well.rows())
    return 0
