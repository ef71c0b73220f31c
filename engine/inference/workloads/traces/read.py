"""Readers of request traces: a file in one of five public layouts becomes a list of `Traced`.

Azure (Patel et al., ISCA 2024): CSV with TIMESTAMP,ContextTokens,GeneratedTokens. BurstGPT (Wang et
al., KDD 2025): CSV whose header names Timestamp (s), Request tokens and Response tokens; failed
requests, with no tokens answered, are among them. vLLM: the result of its serving benchmark, JSON
in a line with input_lens, output_lens and, of late, start_times. Mooncake (Qin et
al., FAST 2025): JSON lines with timestamp (ms), input_length, output_length, hash_ids (one for each
block of 512 prompt tokens). ShareGPT: a JSON list, or JSON lines, of conversations with turns
"from"/"value", or "messages" with "role"/"content". Lines that begin with # are comments.
"""

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.limits import check_unpacked, open_regular
from engine.inference.workloads.traces.records import (
    BURSTGPT,
    HEADER,
    Fault,
    Traced,
    azure,
    benchmarked,
    burstgpt,
    conversation,
    mooncake,
)

FORMATS = ("azure", "burstgpt", "mooncake", "sharegpt", "vllm")
UNTIMED = ("sharegpt", "vllm")  # those that need not say when requests came
LONGEST_LINE = 64 * 2**20  # characters
LARGEST_LIST = 2**30  # bytes of a JSON list, which is read whole


READERS: dict[str, Callable[[Any, int], list[Traced]]] = {
    "azure": azure, "mooncake": mooncake, "sharegpt": conversation, "vllm": benchmarked,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole trace by arrival. `skipped`: bad lines left out, which only `lenient` allows."""

    path: Path
    format: str
    requests: tuple[Traced, ...]
    skipped: int = 0

    @property
    def timed(self) -> bool:
        """Whether it says when requests came."""
        return self.format not in UNTIMED or any(request.arrival for request in self.requests)


def load(
    path: Path, format: str = "auto", *, first: int = 0, count: int = 0, lenient: bool = False
) -> Trace:
    """Requests `first` … `first + count` (0: to the end) of the trace in `path`.

    Raises BadInput naming file and line for the first bad one; `lenient` counts bad ones instead.
    """
    chosen = detect(path) if format == "auto" else format
    if chosen not in FORMATS:
        raise BadInput(f"trace format {format!r}: unknown; one of: auto, {', '.join(FORMATS)}")
    records = _records(path, chosen)
    if chosen == "azure":
        _header(path, records)
    read: Callable[[Any, int], list[Traced]] = (
        burstgpt(_columns(path, records)) if chosen == "burstgpt" else READERS[chosen]
    )
    skipped: list[str] = []
    every = _requests(path, records, read, skipped if lenient else None)
    found = list(islice(_priced(path, every), first, first + count if count else None))
    if not found:
        raise BadInput(f"{path}: no requests from number {first} on; give a longer trace")
    found.sort(key=lambda request: request.arrival)
    start = found[0].arrival
    moved = (replace(request, arrival=request.arrival - start) for request in found)
    return Trace(path, chosen, tuple(moved), len(skipped))


def detect(path: Path) -> str:
    """The layout of a file, from its first line that is not a comment."""
    for _, line in _lines(path):
        text = line.strip()
        if text.replace(" ", "").lower().startswith("timestamp,"):
            return "burstgpt" if _named(text).keys() >= set(BURSTGPT) else "azure"
        if text.startswith("{") and '"input_lens"' in text:
            return "vllm"
        if text.startswith("{") and '"hash_ids"' in text:
            return "mooncake"
        if text.startswith(("[", "{")):
            return "sharegpt"
        break
    raise BadInput(f"{path}: not a known trace layout; give a file in one of: {', '.join(FORMATS)}")


def reuse(trace: Trace) -> tuple[int, int]:
    """(blocks met before, blocks in all): what an endless block cache would find."""
    seen: set[int] = set()
    hits = total = 0
    for request in trace.requests:
        for block in request.blocks:
            hits += block in seen
            total += 1
            seen.add(block)
    return hits, total


def _requests(
    path: Path,
    records: Iterator[tuple[int, Any]],
    read: Callable[[Any, int], list[Traced]],
    skipped: list[str] | None,
) -> Iterator[Traced]:
    for number, record in records:
        try:
            yield from read(record, number)
        except Fault as fault:
            if skipped is None:
                raise BadInput(
                    f"{path}, line {number}: {fault}; mend the line, or read it with lenient"
                ) from None
            skipped.append(str(fault))
        except BadInput as fault:
            raise BadInput(f"{path}, {fault}") from None


def _priced(path: Path, every: Iterator[Traced]) -> Iterator[Traced]:
    """The same, as long as their texts are no more than a file of that size may unpack to."""
    packed, unpacked = path.stat().st_size, 0
    for one in every:
        unpacked += len(one.text)
        check_unpacked(path, unpacked, packed)
        yield one


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines without comments and empty ones."""
    try:
        with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise BadInput(f"{path}, line {number}: longer than {LONGEST_LINE} characters")
                if line.strip() and not line.startswith("#"):
                    yield number, line
    except OSError as fault:
        raise BadInput(f"{path}: cannot read ({fault.strerror}); give a trace file") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not text in UTF-8; give a trace file") from None


def _records(path: Path, layout: str) -> Iterator[tuple[int, Any]]:
    """What `read` takes, one at a time: lines; or, of a JSON list, its members by number."""
    lines = _lines(path)
    if layout == "vllm":
        return _alone(path, lines)
    if layout != "sharegpt":
        return lines
    number, line = next(lines)
    if not line.lstrip().startswith("["):
        return _lines(path)
    if path.stat().st_size > LARGEST_LIST:
        raise BadInput(f"{path}: larger than {LARGEST_LIST} bytes; write it as JSON lines")
    text = "".join([line, *(rest for _, rest in lines)])
    try:
        return iter(enumerate(json.loads(text), 1))
    except (ValueError, RecursionError) as fault:
        raise BadInput(f"{path}: not JSON ({fault}); mend it there") from None


def _alone(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The one line there may be."""
    for found, (number, line) in enumerate(lines):
        if found:
            raise BadInput(f"{path}, line {number}: another run's result; give a file of one")
        yield number, line


def _named(line: str) -> dict[str, int]:
    """Where each column of a CSV header stands."""
    names = [name.strip() for name in line.strip().split(",")]
    return {name: place for place, name in enumerate(names)}


def _columns(path: Path, records: Iterator[tuple[int, str]]) -> dict[str, int]:
    """Where the columns stand that are read, by a CSV's header."""
    number, line = next(records, (1, ""))
    found = _named(line)
    lacks = [name for name in BURSTGPT if name not in found]
    if lacks:
        raise BadInput(f"{path}, line {number}: the header has no {' and no '.join(lacks)}")
    return {name: found[name] for name in BURSTGPT}


def _header(path: Path, records: Iterator[tuple[int, str]]) -> None:
    number, line = next(records, (1, ""))
    if line.replace(" ", "").strip().lower() != HEADER.lower():
        raise BadInput(f"{path}, line {number}: the header must be {HEADER}")
