"""Holistic Trace Analysis beside this: the breakdown of each trace in a folder, counted by both.

    python -m tests.bench.hta_beside FOLDER PYTHON

PYTHON is an interpreter that has HTA (`pip install HolisticTraceAnalysis` into an environment of
its own); FOLDER holds traces of one rank each, `.json` or `.json.gz`, at any depth, such as HTA's
own `tests/data`. Printed: idle, computing and other time as HTA says them, and by how much of HTA's
window at most ours are off, counted as HTA counts and counted as our own breakdown does, both over
all steps of the profiler. The aim is 1% on five traces at least.
"""

import json
import subprocess
import sys
from pathlib import Path

from engine.core.chrome.device_trace import DeviceTrace
from engine.core.chrome.hta import hta_breakdown
from engine.core.chrome.read import read_chrome
from engine.core.errors import BadInput
from workbench.cli.output import print_table
from workbench.traces.read import SUFFIXES

AIM, TRACES = 0.01, 5
PARTS = ("idle", "compute", "window")
ASKED = """
import json, logging, os, sys, warnings
warnings.filterwarnings("ignore"); logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
path = sys.argv[1]
read = TraceAnalysis(
    trace_files={0: path}, trace_dir=os.path.dirname(path), include_last_profiler_step=True
)
row = read.get_temporal_breakdown(visualize=False).iloc[0]
told = [float(row[f"{part}_time(us)"]) for part in ("idle", "compute", "kernel")]
print("TOLD" + json.dumps([each * 1e-6 for each in told]))
"""


def theirs(python: str, path: Path) -> list[float] | None:
    """Seconds of `PARTS` as HTA tells them; None where it fails."""
    ran = subprocess.run([python, "-c", ASKED, str(path)], capture_output=True, text=True)
    told = [line for line in ran.stdout.splitlines() if line.startswith("TOLD")]
    found: list[float] | None = json.loads(told[-1][4:]) if told else None
    return found


def ours(path: Path) -> tuple[list[float], list[float]] | None:
    """Seconds of `PARTS` counted as HTA counts, and as our breakdown of its devices does; None
    where no device worked."""
    try:
        read = read_chrome(path)
    except BadInput:
        return None
    trace = DeviceTrace(
        read.spans, read.categories, read.device_of, read.launched_by, read.zero
    )  # fmt: skip
    as_they, own = hta_breakdown(trace, last_step=True), trace.breakdowns()
    if as_they is None or not own:
        return None
    window = max(each.window for each in own)
    return (
        [as_they.idle, as_they.compute, as_they.window],
        [sum(each.idle for each in own), sum(each.compute for each in own), window],
    )


def off(found: list[float], told: list[float]) -> float:
    """The largest difference of any part, as a share of their window."""
    return max(abs(a - b) for a, b in zip(found, told, strict=True)) / told[-1]


def main(folder: Path, python: str) -> int:
    rows: list[tuple[str, ...]] = []
    near: dict[str, int] = {"counted as HTA": 0, "our own": 0}
    for path in sorted(p for p in folder.rglob("*") if p.name.lower().endswith(SUFFIXES)):
        told, found = theirs(python, path), ours(path)
        name = str(path.relative_to(folder))
        if told is None or found is None:
            who = [w for w, each in (("HTA", told), ("ours", found)) if each is None]
            rows.append((name, f"no device's work by {' and '.join(who)}", "", "", "", ""))
            continue
        share = [each / told[-1] for each in told]
        apart = [off(each, told) for each in found]
        for which, each in zip(near, apart, strict=True):
            near[which] += each <= AIM
        rows.append((
            name, f"{told[-1] * 1e3:.3f} ms", f"{share[0]:.2%}", f"{share[1]:.2%}",
            *(f"{each:.2%}" for each in apart),
        ))  # fmt: skip
    print_table(("trace", "window", "idle", "computing", "as HTA, off", "our own, off"), rows)
    for which, count in near.items():
        sys.stdout.write(f"{which}: {count} traces within {AIM:.0%}\n")
    return 0 if near["counted as HTA"] >= TRACES else 1


def arguments(words: list[str]) -> tuple[Path, str]:
    if len(words) != 2 or not Path(words[0]).is_dir():
        sys.exit(__doc__)
    return Path(words[0]), words[1]


if __name__ == "__main__":
    sys.exit(main(*arguments(sys.argv[1:])))
