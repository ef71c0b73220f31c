"""The shelf: runs an app keeps for looking at again and comparing, and those its pages show now."""

import re
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.run import Run
from workbench.pages.frame.visitors import watching
from workbench.pages.shelf.allowance import Allowance, is_room
from workbench.pages.shelf.run_files import inside
from workbench.pages.shelf.uploads import no_room
from workbench.session import Session
from workbench.traces.read import SUFFIXES, open_log

KEEP = 24  # runs; the oldest go first
EVENTS = 8_000_000  # kept in all of them together, unless one alone is longer
NAME = 120  # characters of a name
TAG, TAGS = 24, 8  # characters of a tag, tags of a run
TRACES = 16  # files of requests kept; the oldest go first
TRACE_BYTES = 256 << 20  # of one of them, at most
PAGES = 32  # study pages open at once, each with runs of its own


class Shelf:
    """Named runs, recorded or live, shared by the pages of one app.

    `root`: the folder whose run files an address may name; None where it may name none.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root
        self.runs: dict[str, Run] = {}
        self.when: dict[str, float] = {}  # run -> seconds of the epoch at which it was kept
        self.tags: dict[str, tuple[str, ...]] = {}  # run -> words a person gave it
        self.shown: dict[str, Session] = {}  # the sessions of open pages
        self.people: dict[str, Allowance] = {}  # of those who have pages open, by name
        self._read: dict[tuple[Path, int, int], str] = {}  # file, time of change, bytes -> name
        self._traces: list[Path] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # gone with the app
        self.version = 0  # grows with every change; readers look at it
        self._lock = threading.Lock()

    def keep(self, run: Run, name: str) -> str:
        """Put a run on the shelf under `name` (numbered where taken); returns the name it got."""
        with self._lock:
            taken = next((n for n, kept in self.runs.items() if kept is run), None)
            if taken is not None:
                return taken
            first = unique = name[:NAME]
            number = 2
            while unique in self.runs:
                unique, number = f"{first} ({number})", number + 1
            self.runs[unique], self.when[unique] = run, time.time()
            while len(self.runs) > KEEP or (len(self.runs) > 1 and self._events() > EVENTS):
                oldest = next(iter(self.runs))
                del self.runs[oldest]
                self.tags.pop(oldest, None)
            self.version += 1
            return unique

    def keep_trace(self, data: bytes, name: str) -> Path:
        """Put a file of requests where runs can read it. Raises BadInput for one too large, or
        where there is no room for it."""
        if len(data) > TRACE_BYTES:
            raise BadInput(f"{name}: {len(data)} bytes; at most {TRACE_BYTES} can be opened here")
        plain = re.sub(r"[^A-Za-z0-9._-]", "_", Path(name).name)[-NAME:].lstrip(".") or "trace"
        with self._lock:
            try:
                self._folder = self._folder or tempfile.TemporaryDirectory(prefix="workbench-")
                path = Path(self._folder.name) / f"{len(self._traces)}-{plain}"
                path.parent.mkdir(exist_ok=True)  # temporary files are cleared away, at times
                path.write_bytes(data)
            except OSError as fault:
                raise no_room(fault) from None
            self._traces.append(path)
            if len(self._traces) > TRACES:
                self._traces[-TRACES - 1].unlink(missing_ok=True)
            return path

    def rename(self, name: str, wanted: str) -> None:
        """Call a run something else. Raises BadInput for no name and for one that is taken."""
        wanted = " ".join(wanted.split())[:NAME]
        with self._lock:
            if not wanted:
                raise BadInput("run: give it a name")
            if wanted in self.runs and wanted != name:
                raise BadInput(f"run {wanted!r}: another run has this name")
            self.get(name)
            self.runs = {wanted if n == name else n: run for n, run in self.runs.items()}
            self.when[wanted] = self.when.pop(name, 0.0)
            self.tags[wanted] = self.tags.pop(name, ())
            self.version += 1

    def tag(self, name: str, words: str) -> None:
        """Give a run these tags, parted by commas, in place of those it had. Raises BadInput for
        too many, and for one that is too long."""
        said = tuple(dict.fromkeys(" ".join(w.split()) for w in words.split(",") if w.strip()))
        long = next((word for word in said if len(word) > TAG), "")
        if long:
            raise BadInput(f"tag {long[:40]!r}: {TAG} characters at most")
        if len(said) > TAGS:
            raise BadInput(f"tags: {len(said)} of them; {TAGS} at most")
        with self._lock:
            self.get(name)
            self.tags[name] = said
            self.version += 1

    def drop(self, name: str) -> None:
        """Take a run off the shelf; its file, where it has one, stays. Raises BadInput."""
        with self._lock:
            self.get(name)
            del self.runs[name]
            self.when.pop(name, None)
            self.tags.pop(name, None)
            self.version += 1

    def open(self, path: str | Path) -> str:
        """Read a run file, or another tool's trace, onto the shelf. Raises BadInput."""
        run = Run(open_log(path))
        run.path = Path(path)
        return self.keep(run, Path(path).name)

    def file(self, asked: str) -> str:
        """The name of the run, or trace, in a file below `root`, read unless it was. Raises
        BadInput."""
        known = next((n for n, run in self.runs.items() if str(run.path) == asked), None)
        if known is not None:
            return known
        if self.root is None:
            raise BadInput(f"run file {asked[:80]!r}: not open here")
        path = inside(self.root, asked, SUFFIXES)
        stat = path.stat()
        mark = (path, stat.st_mtime_ns, stat.st_size)
        name = self._read.get(mark)
        if name not in self.runs:
            name = self._read[mark] = self.open(path)
        return name

    def _events(self) -> int:
        return sum(len(run.log) for run in self.runs.values())

    def check_room(self, person: str = "") -> None:
        """Raises BadInput where as many study pages are open as may be, by one or by all."""
        if not is_room(list(self.shown.values()), PAGES):
            raise BadInput(f"study: {PAGES} pages are open here already; close one, then reload")
        if person in self.people:
            self.people[person].check_room()

    def show(self, session: Session, person: str = "") -> str:
        """A page of `person` (one of the unnamed, unless given) shows this session from now on;
        returns the name it is listed by."""
        session.watched = watching()
        if person:
            self.people.setdefault(person, Allowance()).enter(session)
        with self._lock:
            number = 1
            while (name := f"{session.study} #{number}") in self.shown or name in self.runs:
                number += 1
            self.shown[name] = session
            return name

    def hide(self, name: str) -> None:
        """The page has gone."""
        session = self.shown.pop(name, None)
        for person, allowance in list(self.people.items()):
            if session in allowance.sessions:
                allowance.leave(session)
            if not allowance.sessions:
                del self.people[person]

    def named(self, name: str) -> str:
        """The name on the shelf of the run listed as `name`; that of an open page is put there.

        Raises BadInput where there is none.
        """
        session = self.shown.get(name)
        if session is not None and session.run is not None:
            return self.keep(session.run, session.study)
        self.get(name)
        return name

    def listing(self) -> list[dict[str, Any]]:
        """The runs of open pages, then those kept that are in no file; the newest first."""
        live = {name: session.run for name, session in self.shown.items() if session.run}
        kept = {n: r for n, r in self.runs.items() if r.path is None and r not in live.values()}
        return [
            {"name": name, "study": study_of(run), "state": run.state, "events": len(run.log)}
            for runs in (live, kept)
            for name, run in reversed(runs.items())
        ]

    def get(self, name: str) -> Run:
        """The run of that name. Raises BadInput listing what there is."""
        try:
            return self.runs[name]
        except KeyError:
            there = ", ".join(self.runs) or "the shelf is empty"
            raise BadInput(f"run {name!r}: not on the shelf; {there}") from None


def study_of(run: Run) -> str:
    """The slug of a run's study; "" of a run of none."""
    header = run.log.opened
    return header.study if header is not None else ""
