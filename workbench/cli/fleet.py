"""`workbench fleet`: serve a trace or drawn requests by a described fleet of serving engines."""

import argparse
import tomllib
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import BadInput
from engine.core.limits import read_text
from workbench.cli.output import (
    check_place,
    follow,
    print_json,
    print_table,
    say,
    say_left_out,
    seed,
)
from workbench.cli.run import changes, list_knobs, only_with

if TYPE_CHECKING:
    from engine.fleet.config import FleetConfig
    from engine.fleet.measure import Served
    from workbench.fleet_search.spread import Spread

ABOUT = """serve requests by a modelled fleet: routers, pools, links, faults

  workbench fleet fleet.toml --trace requests.csv --save fleet.run
  workbench fleet --set replicas=16 --set router=prefix_aware --set engine.workload.rate=80
  workbench fleet --hits conversations.jsonl       block hit ratio over the cache's capacity

fleet.toml holds knobs by their paths (`workbench fleet --knobs` lists them):
  replicas = 8
  router = "power_of_choices"
  [pools]
  kind = "prefill_decode"
  prefill = 3
  [engine]
  model = "llama-3.1-8b"
  [engine.executor]
  kind = "modelled"
  device = "h100-sxm"
"""
TIMES = ("ttft", "tpot", "end_to_end", "queueing")
FAULTS = ("died", "recovered")  # what is told of them: work lost, and how long it took
CAPACITIES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FLEET.toml", nargs="?", help="the fleet (default: --set)")
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE", help="a knob")
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="requests: Azure, BurstGPT, Mooncake, ShareGPT or vLLM's benchmark",
    )
    parser.add_argument("--count", type=int, default=0, help="requests taken of it (default: all)")
    parser.add_argument("--speed", type=float, default=1.0, help="it arrives so many times as fast")
    parser.add_argument("--lenient", action="store_true", help="leave its bad lines out")
    parser.add_argument("--hits", metavar="TRACE", help="only a trace's block hit ratio")
    parser.add_argument("--seed", type=seed, default=0, help="the run's seed (default 0)")
    parser.add_argument("--save", metavar="FILE", help="keep the run in this file (*.run)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--knobs", action="store_true", help="list the knobs and stop")


def run(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from engine.core.events import Mark
    from engine.core.file import save
    from engine.core.run import Run
    from engine.fleet.measure import served
    from engine.fleet.run import run as drive
    from workbench.fleet_search.spread import spread

    if args.hits:
        return _hits(args)
    config = described(args)
    if args.knobs:
        return list_knobs(config, args.json)
    check_place(args.save)
    say(f"serving by {config.replicas} replicas …")
    done = follow(Run.start(drive, config, seed=args.seed, study=""))
    saved = str(save(done.log, args.save)) if args.save else None
    found = served(done.log, config)
    ends = spread(config, found)
    faults = [(mark.name, mark.text) for mark in done.log.of(Mark) if mark.name in FAULTS]
    if args.json:
        print_json({**asdict(found), "saved": saved, "interval": _interval(ends, found),
                    "faults": faults})  # fmt: skip
        return 0
    print_table(("modelled", "value"), [*rows(found, config, ends), *faults])
    if saved:
        print(f"\nsaved {saved}; see it with `workbench open {saved}`")
    return 0


def described(args: argparse.Namespace) -> Any:
    """The fleet that file and flags describe. Raises BadInput, naming the line of a bad file."""
    from engine.core.config import from_dict, to_dict, update
    from engine.core.toml import load
    from engine.fleet.config import FleetConfig
    from engine.inference.workloads.trace import FromTrace

    config = FleetConfig(tokens=bool(args.save))
    if args.file:
        path = Path(args.file)
        try:
            given = load(path)
        except OSError as fault:
            raise BadInput(f"{path}: cannot read ({fault.strerror}); give a TOML file") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as fault:
            raise BadInput(f"{path}: not TOML ({fault}); mend it there") from None
        try:
            config = from_dict(FleetConfig, _merged(to_dict(config), given))
        except BadInput as fault:
            raise BadInput(f"{_line(path, str(fault))}: {fault}") from None
    only_with(
        "--trace", bool(args.trace), count=args.count != 0, speed=args.speed != 1.0,
        lenient=args.lenient,
    )  # fmt: skip
    if args.trace:
        trace = {"kind": "trace", "file": args.trace, "count": args.count}
        trace |= {"speed": args.speed, "lenient": args.lenient}
        config = update(config, {"engine.workload": trace})
    config = update(config, changes(args.set))
    if isinstance(config.engine.workload, FromTrace) and config.engine.workload.lenient:
        say_left_out(config.engine.workload.read())
    return config


def _merged(whole: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """`given` over `whole`; of a policy of another kind nothing is kept."""
    found = dict(whole)
    for name, value in given.items():
        old = whole.get(name)
        same = isinstance(old, dict) and isinstance(value, dict)
        if same and value.get("kind", old.get("kind")) == old.get("kind"):
            value = _merged(old, value)
        found[name] = value
    return found


def _line(path: Path, fault: str) -> str:
    """The file, and the line of the knob that a fault names, where it is found."""
    name = fault.partition(":")[0].removeprefix("knob ").strip("' ").rpartition(".")[2]
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if name and line.partition("=")[0].strip().rpartition(".")[2] == name:
            return f"{path}, line {number}"
    return str(path)


def rows(found: "Served", config: "FleetConfig", ends: "Spread | None") -> list[tuple[str, str]]:
    """What a person reads first of a fleet's figures, between what ends where they are known."""
    from widgets.theme import figure
    from workbench.fleet_search.told import binds

    def between(name: str, value: float, unit: str = "") -> str:
        return f"{figure(value, unit)}{ends.told(name, value, unit) if ends else ''}"

    def quantiles(name: str) -> str:
        of = getattr(found, name)
        each = {n: getattr(of, n) for n in ("p50", "p90", "p99")}
        return ", ".join(f"{n} {between(f'{name}.{n}', value, 's')}" for n, value in each.items())

    use = found.utilisation
    told = [
        ("requests finished", f"{found.finished} of {found.requests}"),
        ("refused", str(found.refused)),
        ("time", figure(found.seconds, "s")),
        ("time to first token", quantiles("ttft")),
        ("time per output token", quantiles("tpot")),
        ("end to end", quantiles("end_to_end")),
        ("queueing", quantiles("queueing")),
        (
            "within objective",
            f"{figure(found.good, '%')} (first token {figure(config.objective.ttft, 's')}, "
            f"next ones {figure(config.objective.tpot, 's')})",
        ),
        ("goodput", f"{between('goodput', found.goodput)} requests/s"),
        ("tokens per second", between("tokens_per_second", found.tokens_per_second)),
        ("prompt tokens found in a cache", figure(found.hit_rate, "%")),
        ("a replica at work", f"{figure(min(use), '%')} to {figure(max(use), '%')} of the time"),
        ("replicas paid for", f"{found.replicas:.3g} of {config.replicas} in the mean"),
        ("power", between("watts", found.watts, "W")),
    ]
    if found.late or found.slow:
        told.append(("objective missed", binds(found.late, found.late_queueing, found.slow)))
    if found.cost:
        low, high = ends.of("cost", found.cost) if ends else (found.cost, found.cost)
        told.append(
            (
                "a million tokens",
                f"${found.cost:.3g}" + f" (${low:.3g} to ${high:.3g})" * (low < high),
            )
        )
    if found.retries:
        told.append(("begun again", f"{found.retries} requests"))
    if ends:
        told.append(
            ("in brackets", f"steps {ends.low:.2f} to {ends.high:.2f} times as long as modelled, "
             "between which the cost model errs nine times in ten; so the first "
             f"{ends.same.requests:,} requests came out; figures of all are taken to move alike")
        )  # fmt: skip
    return told


def _interval(ends: "Spread | None", found: "Served") -> dict[str, Any] | None:
    """The ends of steps and of figures, as JSON has them."""
    if ends is None:
        return None
    times = [f"{name}.{at}" for name in TIMES for at in ("p50", "p90", "p99", "mean")]
    names = (*times, "goodput", "tokens_per_second", "watts", "cost")
    figures = {name: list(ends.of(name, attrgetter(name)(found))) for name in names}
    return {"step": [ends.low, ends.high], **figures}


def _hits(args: argparse.Namespace) -> int:
    """The block hit ratio of a trace, least recently used beside the offline optimum."""
    from engine.cache.eviction import FurthestNextUse, LeastRecentlyUsed
    from engine.inference.workloads.trace import FromTrace
    from engine.inference.workloads.traces.hit_ratio import hit_ratio
    from engine.inference.workloads.traces.read import load

    path = FromTrace.path(args.hits)
    requests = load(path, count=args.count, lenient=args.lenient).requests
    endless = hit_ratio(requests, 0, LeastRecentlyUsed())
    most = max(len(each.blocks) for each in requests)
    found = []
    for capacity in (size for size in CAPACITIES if most <= size < endless.total):
        lru, best = (
            hit_ratio(requests, capacity, each()).ratio
            for each in (LeastRecentlyUsed, FurthestNextUse)
        )
        found.append({"blocks": capacity, "lru": lru, "optimum": best})
    found.append({"blocks": None, "lru": endless.ratio, "optimum": endless.ratio})
    if args.json:
        print_json({"found": endless.found, "total": endless.total, "capacities": found})
        return 0
    print_table(
        ("blocks", "least recently used", "offline optimum"),
        [
            (f"{row['blocks']:,}" if row["blocks"] else "endless", f"{row['lru']:.6f}",
             f"{row['optimum']:.6f}")
            for row in found
        ],
    )  # fmt: skip
    return 0
