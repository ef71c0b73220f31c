"""`workbench run`: one run of a study, its figures, and the run as a file."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.names import suggest
from engine.core.run import Run
from workbench.catalogue import study
from workbench.cli.output import check_place, follow, print_json, print_table, say, seed
from workbench.moment import moment
from workbench.study import Study

WHOLE = "100%"  # when a picture is of: the end
PICTURE = (1280, 760)  # pixels of a picture, before it is made small

ABOUT = """run a study once and print its figures

  workbench run flover --set batching=static_batch --save static.run
  workbench run megatron --preset real-ranks --picture ranks.png --view schedule
  workbench run megatron --described run.toml     the schedule of a run that is predicted"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", metavar="SLUG", help="the study")
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="a knob")
    parser.add_argument("--preset", default="", help="start from one of the study's presets")
    parser.add_argument(
        "--described", metavar="RUN.toml",
        help="megatron: play the schedule of a training run that `workbench predict` takes",
    )  # fmt: skip
    parser.add_argument("--seed", type=seed, default=0, help="the run's seed (default 0)")
    parser.add_argument("--save", metavar="FILE", help="keep the run in this file (*.run)")
    parser.add_argument("--picture", metavar="FILE", help="a view of the run as a picture (*.png)")
    parser.add_argument(
        "--view", default="", metavar="NAME", help="which view that shows (default: the first)"
    )
    parser.add_argument(
        "--at",
        default=WHOLE,
        metavar="MOMENT",
        help="when: seconds, or a share as 40%%",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--knobs", action="store_true", help="list the knobs and stop")
    parser.add_argument("--presets", action="store_true", help="list the presets and stop")


def changes(pairs: Sequence[str]) -> dict[str, Any]:
    """`KNOB=VALUE` texts as knob changes, `none` for no value. Raises BadInput without a `=`."""
    found = {}
    for pair in pairs:
        path, sign, value = pair.partition("=")
        if not sign or not path:
            raise BadInput(f"--set {pair!r}: not a knob and a value; write --set KNOB=VALUE")
        found[path.strip()] = None if value == "none" else value
    return found


def only_with(owner: str, there: bool, **told: bool) -> None:
    """Raises BadInput where an option is told, but not the one that it says something about."""
    for name in (name for name, given in told.items() if given and not there):
        raise BadInput(f"--{name}: says something of {owner}; add that, or leave --{name} out")


def run(args: argparse.Namespace) -> int:
    from engine.core.config import to_dict
    from engine.core.file import save
    from workbench.summary import rows, summary

    chosen = study(args.slug)
    config = chosen.configured({**_described(args.described), **changes(args.set)}, args.preset)
    if args.presets:
        return _list_presets(chosen, args.json)
    if args.knobs:
        return list_knobs(config, args.json)
    for place in (args.save, args.picture):
        check_place(place)
    shown, when = _view(chosen, args.view), moment(args.at)
    only_with("--picture", bool(args.picture), view=args.view != "", at=args.at != WHOLE)
    say(f"running {args.slug} …")
    done = follow(Run.start(chosen.driver, config, seed=args.seed, study=args.slug))
    saved = str(save(done.log, args.save)) if args.save else None
    if args.picture:
        _save_picture(done.log, args.slug, shown, when, Path(args.picture))
    if args.json:
        facts = {"slug": args.slug, "seed": args.seed, "config": to_dict(config), "saved": saved}
        print_json({**facts, **summary(done.log)})
    else:
        print_table(("figure", "value"), rows(done.log))
        say(f"\nwhether its paper's claims hold here: `workbench check {args.slug}`")
        if saved:
            print(f"\nsaved {saved}; see it with `workbench open {saved}`")
    return 0


def _described(file: str | None) -> dict[str, Any]:
    """Knobs that play a described run's schedule; none without a file. Raises BadInput."""
    if file is None:
        return {}
    from engine.training.step_time.described import read
    from workbench.parallelism_split import schedule_knobs

    return schedule_knobs(read(Path(file)))


def _view(chosen: Study, name: str) -> str:
    """The view of the study to be pictured. Raises BadInput for one that it has not."""
    if name and name not in chosen.views:
        raise BadInput(
            f"--view {name!r}: {chosen.slug} has no such view; {suggest(name, chosen.views)}"
        )
    return name or chosen.views[0]


def _save_picture(log: Log, slug: str, name: str, when: tuple[float, bool], place: Path) -> None:
    """Write a view of the run at that moment as PNG. Raises BadInput where no browser drew it."""
    from engine.core.writing import written
    from widgets.export.export import page
    from workbench.notebook.pictures import BROWSERS, picture, shrunk

    value, is_share = when
    at = value * log.duration if is_share else value
    drawn = picture(page(log, [name], title=slug, at=at, is_still=True), *PICTURE)
    if drawn is None:
        browsers = ", ".join(BROWSERS)
        raise BadInput(f"--picture {place}: no browser drew it; install one of {browsers}")
    with written(place, "the picture") as part:
        part.write_bytes(shrunk(drawn))


def _list_presets(chosen: Study, as_json: bool) -> int:
    """Print each preset, the words of its button on the page and what it turns; exit code 0."""
    words = {repr(dict(turns)): text for text, turns in chosen.tries}
    found = [(name, words.pop(repr(dict(turns)), ""), turns)
             for name, turns in chosen.presets.items()]  # fmt: skip
    found += [("", text, turns) for text, turns in chosen.tries if text in words.values()]
    if as_json:
        print_json([{"preset": n, "button": b, "turns": dict(turns)} for n, b, turns in found])
    else:
        rows = [(n or "–", b, " ".join(f"{k}={v}" for k, v in t.items())) for n, b, t in found]
        print_table(("preset", "button on the page", "turns (--set)"), rows)
    return 0


def list_knobs(config: Any, as_json: bool) -> int:
    """Print every knob of `config`; exit code 0."""
    from dataclasses import asdict

    from engine.core.config import knobs

    found = knobs(config)
    if as_json:
        print_json([asdict(knob) for knob in found])
    else:
        print_table(
            ("knob", "value", "range", "what it is"),
            [
                (k.path, k.value, _range(k), f"{k.doc} {f'({k.unit})' if k.unit else ''}")
                for k in found
            ],
        )
    return 0


def _range(knob: Any) -> str:
    if knob.choices:
        return " | ".join(knob.choices)
    if knob.low is None and knob.high is None:
        return ""
    ends = ("" if end is None else f"{end:g}" for end in (knob.low, knob.high))
    return " … ".join(ends)
