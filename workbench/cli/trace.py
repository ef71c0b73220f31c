"""`workbench trace`: a run file as a Chrome trace, which Perfetto opens, and the other way; a
breakdown of either, or what SQL asks of it."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from engine.core.errors import BadInput
from workbench.cli.output import say, visible

ABOUT = """write a run as a Chrome trace (for Perfetto), or a Chrome trace as a run

  workbench trace profile.json.gz --breakdown   what its accelerators did, and waited for
  workbench trace rank-*.json.gz -o job.run     the ranks of one job on one axis
  workbench trace a.run --sql "SELECT name, count(*), sum(seconds) FROM spans GROUP BY name"

Tables: spans, levels, marks, tokens, branches, pages, moves; times in seconds. SQL only reads."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", nargs="+",
        help="a run (.run), or a profiler's trace (.json, .json.gz, .sqlite); several: the ranks "
        "of one job",
    )  # fmt: skip
    parser.add_argument(
        "--breakdown", action="store_true",
        help="print each device's compute, communication, copies and idle time, the same as "
        "Holistic Trace Analysis counts, what its streams waited for, and its kernels",
    )  # fmt: skip
    parser.add_argument("--sql", metavar="SELECT", help="ask the file's events, in SQLite's SQL")
    parser.add_argument("--json", action="store_true", help="with --breakdown or --sql: print JSON")
    parser.add_argument("-o", "--out", metavar="OUT", help="where to (default: beside it)")


def run(args: argparse.Namespace) -> int:
    from engine.core.chrome.write import save_chrome_trace
    from engine.core.events import Mark
    from engine.core.file import load, save
    from workbench.traces.read import SUFFIXES, log_of

    path = Path(args.file[0])
    if len(args.file) > 1:
        return _ranks(args)
    if args.sql is not None:
        return _sql(path, args.sql, args.json)
    if args.breakdown:
        return _breakdown(path, args.json)
    kind = next((s for s in SUFFIXES if path.name.lower().endswith(s)), "")
    stem = path.name[: len(path.name) - len(kind)] if kind else path.stem
    out = Path(args.out) if args.out else path.parent / (stem + (".run" if kind else ".json"))
    if _place(out) == _place(path):
        raise BadInput(f"{out}: would overwrite what is read; give another place with -o")
    if kind and not args.out and out.exists():
        # perhaps the run that the trace was written from, and it holds more than the trace does
        raise BadInput(f"{out}: is there already; give another place with -o, or remove it")
    if kind:
        log = log_of(path)
        print(save(log, out))
        _say_left_out(path, [mark.text for mark in log.of(Mark) if mark.name == "left out"])
        return 0
    log = load(path)
    try:
        print(save_chrome_trace(log, out))
    except OSError as fault:
        raise BadInput(f"{out}: cannot write the trace ({fault.strerror})") from None
    return 0


def _say_left_out(path: Path, notes: Iterable[str]) -> None:
    for note in notes:
        say(visible(f"{path}: {note}; left out"))


def _place(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as fault:  # links in a circle; a NUL in the name
        raise BadInput(f"{path}: no path of a file ({fault})") from None


def _ranks(args: argparse.Namespace) -> int:
    """Traces of one job's ranks as one run; the straggler is told."""
    from engine.core.events import Mark
    from engine.core.file import save
    from workbench.traces.read import log_of_ranks

    if args.breakdown or args.sql is not None or not args.out:
        raise BadInput("trace: several files become one run; say where to with -o JOB.run")
    paths = [Path(name) for name in args.file]
    seen: set[Path] = set()
    for path in paths:
        if _place(path) in seen:
            raise BadInput(f"{path}: given twice; give each rank's trace once")
        seen.add(_place(path))
    if _place(Path(args.out)) in seen:
        raise BadInput(f"{args.out}: would overwrite what is read; give another place with -o")
    log = log_of_ranks(paths)
    print(save(log, Path(args.out)))
    print(*(visible(mark.text) for mark in log.of(Mark) if mark.name == "ranks"), sep="\n")
    return 0


def _sql(path: Path, query: str, as_json: bool) -> int:
    """What one SELECT gives of the events of a run or a trace."""
    from workbench.cli.output import print_json, print_table
    from workbench.traces.read import open_log
    from workbench.traces.sql import MOST_ROWS, asked

    found = asked(open_log(path), query)
    if as_json:
        print_json({"columns": found.columns, "rows": found.rows, "cut": found.is_cut})
    else:
        print_table(found.columns, [[_cell(value) for value in row] for row in found.rows])
    if found.is_cut:
        say(f"only the first {MOST_ROWS:,} rows; ask for fewer, or sum them up")
    return 0


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _breakdown(path: Path, as_json: bool) -> int:
    from dataclasses import asdict

    from engine.core.chrome.device_trace import DeviceTrace
    from engine.core.chrome.gaps import waited
    from engine.core.chrome.hta import hta_breakdown
    from engine.core.chrome.read import read_chrome
    from workbench.cli.output import print_json, print_table
    from workbench.traces.tables import tables

    read = read_chrome(path)
    trace = DeviceTrace(
        read.spans, read.categories, read.device_of, read.launched_by, read.zero
    )  # fmt: skip
    _say_left_out(path, read.notes)
    found = trace.breakdowns()
    if not found:
        raise BadInput(f"{path}: no kernels of an accelerator in it; nothing to break down")
    if as_json:
        devices = [{**asdict(b), "idle": b.idle, "exposed": b.exposed} for b in found]
        waits = [{**asdict(w), "lane": read.spans.lanes[w.lane]} for w in waited(trace.gaps())]
        ran = [asdict(kernel) for kernel in trace.kernels()]
        hta = {
            how: asdict(b) | {"other": b.other}
            for how, last in (("default", False), ("all_steps", True))
            if (b := hta_breakdown(trace, last_step=last)) is not None
        }
        print_json({"devices": devices, "hta": hta, "waits": waits, "kernels": ran})
        return 0
    for place, (title, heads, rows) in enumerate(tables(trace)):
        if rows:
            print(f"{chr(10) if place else ''}{title}")
            print_table(heads, rows)
    return 0
