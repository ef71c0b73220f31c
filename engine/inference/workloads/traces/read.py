"""Readers of request traces: a file in one of three public layouts becomes a list of `Traced`.

Azure (Patel et al., ISCA 2024): CSV with TIMESTAMP,ContextTokens,GeneratedTokens. Mooncake (Qin et
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
    HEADER,
    Fault,
    Traced,
    azure,
    conversation,
    mooncake,
)

FORMATS = ("azure", "mooncake", "sharegpt")
LONGEST_LINE = 64 * 2**20  # characters
LARGEST_LIST = 2**30  # bytes of a JSON list, which is read whole


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole trace by arrival. `skipped`: bad lines left out, which only `lenient` allows."""

    path: Path
    format: str
    requests: tuple[Traced, ...]
    skipped: int = 0


def load(
    path: Path, format: str = "auto", *, first: int = 0, count: int = 0, lenient: bool = False
) -> Trace:
    """Requests `first` … `first + count` (0: to the end) of the trace in `path`.

    Raises BadInput naming file and line for the first bad one; `lenient` counts bad ones instead.
    """
    chosen = detect(path) if format == "auto" else format
    if chosen not in FORMATS:
        raise BadInput(f"trace format {format!r}: unknown; one of: auto, {', '.join(FORMATS)}")
    read = {"azure": azure, "mooncake": mooncake, "sharegpt": conversation}[chosen]
    records = _records(path, chosen)
    if chosen == "azure":
        _header(path, records)
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
        text = line.lstrip("\ufeff").strip()
        if text.replace(" ", "").lower().startswith("timestamp,"):
            return "azure"
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
        with io.TextIOWrapper(open_regular(path), encoding="utf-8") as file:
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
    if layout != "sharegpt":
        return lines
    number, line = next(lines)
    if not line.lstrip("\ufeff \t").startswith("["):
        return _lines(path)
    if path.stat().st_size > LARGEST_LIST:
        raise BadInput(f"{path}: larger than {LARGEST_LIST} bytes; write it as JSON lines")
    text = "".join([line, *(rest for _, rest in lines)])
    try:
        return iter(enumerate(json.loads(text.lstrip("\ufeff")), 1))
    except (ValueError, RecursionError) as fault:
        raise BadInput(f"{path}: not JSON ({fault}); mend it there") from None


def _header(path: Path, records: Iterator[tuple[int, str]]) -> None:
    number, line = next(records, (1, ""))
    if line.lstrip("\ufeff").replace(" ", "").strip().lower() != HEADER.lower():
        raise BadInput(f"{path}, line {number}: the header must be {HEADER}")
