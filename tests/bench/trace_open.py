"""How long a big Chrome trace takes to open, and how much memory: read, folded, first picture.

    python -m tests.bench.trace_open [GIGABYTES]

Profiles a small transformer layer with torch's own profiler, writes its entries over and over with
later times until the file has that many gigabytes (1), and opens it in a fresh process. Printed:
seconds to read, to fold and reduce for each view, the peak memory of that process, spans a second.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TIMES = re.compile(rb'"ts": (\d+\.\d+)')
LATER = 60_000.0  # microseconds between repetitions
OPENING = """
import resource, sys, time
began = time.perf_counter()
from widgets.fold import History
from widgets.views.schedule.detail import reduce
from widgets.view import view
from workbench.traces.read import open_log
from workbench.pages.suggested_views import suggested_views
print(f"imports   {time.perf_counter() - began:6.2f} s")
began = time.perf_counter()
log = open_log(sys.argv[1])
took = time.perf_counter() - began
spans = sum(blob.shape[1] for blob in log.blobs.values())
print(f"read      {took:6.2f} s, {spans:,} spans, {spans / took / 1e6:.2f} M a second")
for name in suggested_views(log):
    began = time.perf_counter()
    frame = History(log, view(name).fold()).latest().frame()
    if name == "schedule":
        frame = reduce(frame, {})
    print(f"{name:9} {time.perf_counter() - began:6.2f} s")
print(f"memory    {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:6.2f} GB at most")
"""


def profiled(path: Path) -> None:
    """A profile of twenty steps of one layer, forward and backward."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    batch = torch.randn(4, 32, 64)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as found:
        for _ in range(20):
            layer(batch).sum().backward()
    found.export_chrome_trace(str(path))


def repeated(source: Path, target: Path, size: float) -> None:
    """`source` with its entries again and again, each time later, up to `size` bytes."""
    data = source.read_bytes()
    first = data.index(b"[", data.index(b'"traceEvents"')) + 1
    last = data.rindex(b"]")
    parts = TIMES.split(data[first:last].rstrip())
    with target.open("wb") as out:
        written = out.write(data[:first])
        turn = 0
        while written < size:
            out.write(b"," if turn else b"")
            for place, part in enumerate(parts):
                text = b'"ts": %.3f' % (float(part) + turn * LATER) if place % 2 else part
                written += out.write(text)
            turn += 1
        out.write(data[last:])


def main() -> None:
    size = float(sys.argv[1]) * 1e9 if len(sys.argv) > 1 else 1e9
    with tempfile.TemporaryDirectory() as folder:
        small, big = Path(folder) / "small.json", Path(folder) / "big.json"
        profiled(small)
        repeated(small, big, size)
        sys.stdout.write(f"file      {big.stat().st_size / 1e9:6.2f} GB\n")
        sys.stdout.flush()
        subprocess.run([sys.executable, "-c", OPENING, str(big)], check=True)


if __name__ == "__main__":
    main()
