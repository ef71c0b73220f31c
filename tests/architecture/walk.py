"""The walk of one knob: which first-party files a run enters, in the order it comes to them.

`python -m tests.architecture.walk flover workload.count=24` runs the study with the knob as
`workbench run` does and prints each file whose code was entered after the command was given: from
the catalogue through config, driver and engine to the figures. It runs once before, so that what is
only imported does not count.
"""

import argparse
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import engine
from engine.core.run import Run
from workbench.catalogue import study
from workbench.summary import rows

ROOT = Path(engine.__file__).resolve().parent.parent
ROOMS = ("engine", "widgets", "workbench")


class Walk:
    """Notes files whose functions are entered, by any thread, while it is on."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self._seen: set[CodeType] = set()

    def __enter__(self) -> "Walk":
        threading.setprofile(self._enter)
        sys.setprofile(self._enter)
        return self

    def __exit__(self, *_: Any) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _enter(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code in self._seen:
            return
        self._seen.add(code)
        path = Path(code.co_filename)
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in ROOMS:
            self.files.setdefault(path.relative_to(ROOT).with_suffix("").as_posix())


def turned(slug: str, knobs: Mapping[str, str]) -> None:
    """One run of a study with these knobs, and its figures. Raises BadInput."""
    chosen = study(slug)
    rows(Run.start(chosen.driver, chosen.configured(knobs), study=slug).wait().log)


def walk(slug: str, knobs: Mapping[str, str]) -> list[str]:
    """Files entered by one run of a study with these knobs. Raises BadInput."""
    turned(slug, knobs)
    with Walk() as walked:
        turned(slug, knobs)
    return list(walked.files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("slug")
    parser.add_argument("knobs", nargs="*", metavar="KNOB=VALUE")
    args = parser.parse_args()
    found = walk(args.slug, dict(knob.split("=", 1) for knob in args.knobs))
    print("\n".join(f"{n:3}  {name}" for n, name in enumerate(found, 1)))
    print(f"{len(found)} files")


if __name__ == "__main__":
    main()
