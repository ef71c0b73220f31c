"""Names of a trace's lanes and devices, from what its metadata entries say."""

from collections import Counter
from collections.abc import Collection, Container, Iterable
from typing import Any

Called = dict[tuple[str, Any, Any], Any]  # (kind of name, process, thread) -> the entry's arguments


def device_names(
    lanes: Iterable[tuple[Any, Any]], on_device: Container[int], called: Called
) -> list[str]:
    """Of each lane what its device is called, which a trace writes as a process; "" for a lane
    that is none of `on_device`."""
    labels: dict[Any, str] = {}  # by the first entry that says one
    for (what, pid, _), said in called.items():
        if what == "process_labels":
            labels.setdefault(pid, _text(said, "labels"))
    return [
        (labels.get(pid) or f"GPU {pid}") if place in on_device else ""
        for place, (pid, _) in enumerate(lanes)
    ]


def lane_names(lanes: Collection[tuple[Any, Any]], called: Called) -> list[str]:
    """A name for each lane: as the trace calls its thread, with what tells it from others."""
    whole: dict[tuple[str, Any], Any] = {}  # what is said of a process, by its first entry
    for (what, pid, _), said in called.items():
        whole.setdefault((what, pid), said)
    threads = [
        _text(called.get(("thread_name", pid, tid)), "name") or f"thread {tid}"
        for pid, tid in lanes
    ]
    often = Counter(threads)
    found: dict[str, None] = {}
    for (pid, tid), thread in zip(lanes, threads, strict=True):
        process = _text(whole.get(("process_name", pid)), "name") or f"process {pid}"
        label = _text(whole.get(("process_labels", pid)), "labels")
        names = (
            f"{label}, {thread}" if label not in ("", "CPU") else thread,
            f"{thread}, {process}",
            f"{thread}, {process} ({pid}, {tid})",
            f"{thread}, {process} ({pid!r}, {tid!r})",
        )
        alone = often[thread] == 1 or names[0] != thread
        kept = [n for n in names[0 if alone else 1 :] if n not in found]
        found[kept[0] if kept else f"{names[-1]} {len(found)}"] = None
    return list(found)


def _text(said: dict[str, Any] | None, key: str) -> str:
    return str(said.get(key, "")) if said else ""
