"""Layout of serving tables: a line for each request of one run, with its lengths and times.

Which run it is stands in its path, its notes and a `meta.json` beside it, as LLMServingSim keeps
them (…/bench/examples/DEVICE/MODEL/…; …_tp2_…; the engine's limits), or is told by knobs
(`cluster.device`, `split.tensor` …). Times in seconds from any one moment.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.limits import read_text
from engine.inference.serving_time.described import ServingRun
from engine.inference.serving_time.interval import Interval, Requests, played
from engine.inference.serving_time.replica import Replicas, Times
from engine.models.loading.find import public
from workbench.cost_model.rows import Cells, sheet_of
from workbench.predictions.prediction import Estimate
from workbench.predictions.score import Scored
from workbench.predictions.serving import FIGURES, KIND

COLUMNS = {
    "prompt": ("input_toks", "prompt_tokens", "input_tokens", "prompt_len", "input_len"),
    "answer": ("output_toks", "output_tokens", "completion_tokens", "output_len"),
    "queued": ("queued_s", "arrival_s", "arrival", "queued", "start_s"),
    "first": ("first_token_s", "first_s"),
    "last": ("last_token_s", "last_s", "end_s"),
}
RUN = re.compile(r"examples/(?P<device>[^/\s]+)/(?P<model>[^/\s]+)/")
RANKS = re.compile(r"(?<![a-z])(tp|pp|dp|ep)[_ ]?(\d+)(?![a-z0-9])")
AXES = {"tp": "split.tensor", "pp": "split.pipeline", "dp": "split.data"}
LIMITS = {
    "max_num_seqs": "engine.running", "max_num_batched_tokens": "engine.tokens", "dtype": "dtype",
    "tensor_parallel_size": "split.tensor", "pipeline_parallel_size": "split.pipeline",
    "data_parallel_size": "split.data", "enable_expert_parallel": "split.expert",
    "num_gpu_blocks": "engine.blocks", "block_size": "engine.page",
    "gpu_memory_utilization": "engine.memory",
}  # fmt: skip
MEANS = ("TTFT mean", "TTFT median", "TTFT p99", "TPOT mean", "TPOT median", "TPOT p99",
         "output tokens per second")  # fmt: skip


def fits(head: set[str]) -> bool:
    """Whether a table's columns tell requests."""
    return all(any(name in head for name in names) for names in COLUMNS.values())


def scored(cells: Sequence[Cells], path: Path, changes: Mapping[str, Any]) -> Iterator[Scored]:
    """TTFT and TPOT of every request and over all of them, beside the run's prediction."""
    run = described(cells, path, changes)
    requests, real = measured(cells)
    found = played(Replicas(run), requests)
    order = _order(cells)
    where = f"{path}"
    name = f"{run.model}, {run.cluster.device}"
    for each in MEANS:
        figure, unit = FIGURES[each]
        estimate = Estimate(*found.of(figure), unit)
        yield Scored(where, KIND, f"all of {name}", each, figure(real), estimate)
    for index, at in enumerate(order):
        for what, row in (("ttft_R", "TTFT"), ("tpot_R", "TPOT")):
            seen = float(getattr(real, what)[index])
            if np.isfinite(seen) and seen > 0:
                here = cells[at].where
                yield Scored(here, KIND, f"{row}, {name}", row, seen, _one(found, what, index))


def measured(cells: Sequence[Cells]) -> tuple[Requests, Times]:
    """Requests by arrival, and how they were served. Raises BadInput naming the line."""
    told = [_numbers(cells[at]) for at in _order(cells)]
    prompt, answer, queued, first, last = np.array(told).T
    with np.errstate(invalid="ignore", divide="ignore"):
        tpot = np.where(answer > 1, (last - first) / (answer - 1), np.nan)
    requests = queued - queued[0], prompt.astype(int), answer.astype(int)
    seconds = float(last.max() - queued[0])
    served = Times(first - queued, tpot, last - queued, seconds, int(answer.sum()), {}, 0, 0)
    return requests, served


def _order(cells: Sequence[Cells]) -> list[int]:
    """Where requests stand, by arrival."""
    queued = [_numbers(each)[2] for each in cells]
    return sorted(range(len(cells)), key=lambda at: queued[at])


def _one(found: Interval, what: str, index: int) -> Estimate:
    """One request's figure. Requests beyond those played shorter and longer take the run's ends."""
    value = float(getattr(found.times, what)[index])
    if index < len(found.short.ttft_R):
        ends = [float(getattr(each, what)[index]) for each in (found.short, found.long)]
    else:
        ends = [value * found.low, value * found.high]
    return Estimate(value, min(value, *ends), max(value, *ends), "s")


def _numbers(cells: Cells) -> tuple[float, ...]:
    columns = [next(c for c in names if c in cells.line) for names in COLUMNS.values()]
    counts = [float(cells.count(column)) for column in columns[:2]]
    times = [_time(cells, column) for column in columns[2:]]
    if not times[0] <= times[1] <= times[2]:
        raise BadInput(f"{cells.where}: a request that is answered before it came")
    return (*counts, *times)


def _time(cells: Cells, column: str) -> float:
    try:
        return float(cells.text(column))
    except ValueError:
        raise BadInput(
            f"{cells.where}: column {column!r}: {cells.text(column)!r} is no number"
        ) from None


def described(cells: Sequence[Cells], path: Path, changes: Mapping[str, Any]) -> ServingRun:
    """The run of a table. Raises BadInput where model or device is told nowhere."""
    words = f"{path.stem} {cells[0].origin.split(chr(10), 1)[-1]}"
    told: dict[str, Any] = {"engine.name": "vllm", **_meta(path)}
    named = RUN.search(words)
    device = sheet_of(named["device"]) if named else ""
    model = (_model(named["model"]) if named else "") or _model(path.stem)
    told |= _split(path.stem.lower())
    for knob, value in (("cluster.device", device), ("model", model)):
        if value:
            told[knob] = value
        elif knob not in changes:
            raise BadInput(f"{path}: its {knob} is told nowhere; say it: --set {knob}=…")
    return update(ServingRun(), {**told, **changes})


def _model(text: str) -> str:
    """The public architecture whose name a text begins with or holds, the longest; else ""."""
    plain = _plain(text)
    names = [name for name in public() if _plain(name) in plain]
    return max(names, key=len, default="")


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _meta(path: Path) -> dict[str, Any]:
    """What a `meta.json` beside the table says of its run: of the device in the table's name."""
    beside = path.parent / "meta.json"
    try:
        told = json.loads(read_text(beside))
    except (OSError, UnicodeDecodeError, ValueError):
        return {}
    if not isinstance(told, dict):
        return {}
    stem = _plain(path.stem)
    parts = [v for k, v in told.items() if isinstance(v, dict) and _plain(k) in stem]
    found: dict[str, Any] = {}
    for name, value in (
        (k, v) for part in parts or [told] for t in _tables(part) for k, v in t.items()
    ):
        if name in LIMITS and value is not None and value != "auto":
            found[LIMITS[name]] = value
        elif _plain(name.rsplit("_", 1)[0]) in stem or _plain(name) in stem:
            found |= _split(f"{name} {value}".lower())  # "qwen3_32b_tp": 2
    return found


def _split(text: str) -> dict[str, Any]:
    """Ranks told in words: `tp2`, `dp 2, expert parallel`."""
    found: dict[str, Any] = {}
    for word, size in RANKS.findall(text):
        if word in AXES:
            found[AXES[word]] = int(size)
        else:
            found["split.expert"] = int(size) > 1
    return found | ({"split.expert": True} if "expert" in text else {})


def _tables(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield part
    for each in part.values():
        if isinstance(each, dict):
            yield from _tables(each)
