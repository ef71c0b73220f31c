"""Opens files one by one in a process of its own (`python -m tests.malformed.opener`).

In: lines of JSON with kind and path. Out: a line of JSON for each with how it went. Memory is
bounded, so that a size told by a file and believed shows as a fault.
"""

import json
import resource
import sys
import time
from pathlib import Path

from engine.core.errors import BadInput
from engine.hardware.device import Device
from engine.hardware.sheet import read as read_sheet
from engine.inference.workloads.traces.read import load as load_requests
from engine.inference.workloads.traces.read import reuse
from engine.models.families import read_config
from engine.models.loading.safetensors_file import FLOATS, read_header
from engine.models.text.tokenizer import Tokenizer
from engine.training.plan.check import check as check_plan
from workbench.cli.plan import read_plan
from workbench.cost_model.tables import table
from workbench.notebook.run_one import inject, report
from workbench.notebook.run_one import read as read_notebook
from workbench.pages.suggested_views import suggested_views
from workbench.summary import rows
from workbench.traces.read import open_log

ROOM = 2 << 30  # bytes of address space beyond what the imports took


def open_run(path):
    log = open_log(path)
    suggested_views(log)
    rows(log)


def open_weights(path):
    for stored in read_header(path).values():
        if stored.dtype in FLOATS:
            stored.read()


def open_tokenizer(path):
    tokenizer = Tokenizer(path)
    tokenizer.decode(tokenizer.encode("ab ba, one"))


def open_notebook(path):
    book = read_notebook(path)
    inject(book, {"x": 2})
    report(book)


def open_requests(path):
    reuse(load_requests(path))


def open_plan(path):
    faults = check_plan(read_plan(str(path))[0])
    if faults:
        raise BadInput(faults[0])


OPENS = {
    "run": open_run,
    "trace": open_run,
    "config": lambda path: read_config(path.parent),
    "tokenizer": open_tokenizer,
    "weights": open_weights,
    "notebook": open_notebook,
    "sheet": lambda path: read_sheet(Device, path),
    "measured": lambda path: table(path),
    "requests": open_requests,
    "plan": open_plan,
}


def outcome(kind, path):
    """How it went: opened, refused in one line, or a fault, with the seconds of processor time."""
    begun = time.process_time()
    try:
        OPENS[kind](path)
        how, line = "opened", ""
    except BadInput as fault:
        how, line = "refused", str(fault)
    except BaseException as fault:
        how, line = "fault", f"{type(fault).__name__}: {str(fault)[:300]}"
    return {"how": how, "line": line, "seconds": time.process_time() - begun}


def main():
    answers = sys.stdout
    sys.stdout = sys.stderr
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    for line in sys.stdin:
        asked = json.loads(line)
        answers.write(json.dumps(outcome(asked["kind"], Path(asked["path"]))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
