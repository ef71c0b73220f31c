"""Fits the cost model's constants on measured tables of one device, holding rows out.

Rows are held out in whole groups (a product's n and k, an attention's heads and batch, a layer's
model and split), chosen by the checksum of the group's name, so that the split is the same on every
machine. Out come constants with the held-out errors as intervals.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.hardware import device
from engine.hardware.cost.constants import PARTS as KINDS
from engine.hardware.cost.constants import (
    Collective,
    Constants,
    Decode,
    Experts,
    Interval,
    Matmul,
    Prefill,
    Rows,
)
from workbench.cost_model.check import Batches, called, errors
from workbench.cost_model.rows import Measured
from workbench.cost_model.simplex import ROUNDS, lowest

PARTS = 4  # that groups are dealt into
NOISE = 12e-6  # s: layer operators printed in whole microseconds are too coarse below this
SURE = (0.05, 0.95)  # quantiles of an interval
KEEPS = 2e-3  # of mean error, for a constant e times what every fit begins with
FEWEST = 12  # rows to fit an operator on
ROWS = ("norm", "rotary", "swiglu", "add", "embedding")
OPERATORS = (*KINDS, *ROWS)
SPLIT = (
    "groups (n and k of a product; heads and batch of an attention; model and split of a layer; "
    "kind and ranks of a collective) are dealt into four by their names' crc32; shipped constants "
    "are fitted on all of them, by least absolute error of ln(predicted / measured); layer "
    "products below 12 us, which their table rounds to 1 us, and times of networks, whose small "
    "messages carry the host's launches, are left out; tables that hold the same operator count "
    "alike; intervals are quantiles over four fits, from each of which another quarter is held "
    "out, so that every row is predicted by constants that never saw it"
)
PRODUCT = Matmul(
    launch=4e-6, rate=1.0, edge=20, wave=1e-6, bandwidth=0.8, overlap=0.2,
    holds=1 / 6, cache=6.0, store=1.0, heat=0.1, warm=1e-3, merge=2e-6,
)  # fmt: skip
GROUPED = Experts(
    launch=2.5e-5, expert=1e-7, rate=0.7, edge=10, bandwidth=0.8, again=0.5, passes=1.0,
    overlap=0.2, heat=0.1, warm=1e-3,
)  # fmt: skip
START = Constants(
    source="",
    split=SPLIT,
    clock=1.41e9,
    best=0.8,
    matmul=PRODUCT,
    narrow=PRODUCT.model_copy(update={"cuts": 1, "merge": 0.0, "narrow": 0.5, "spill": 1e-5}),
    experts=GROUPED,
    narrow_experts=GROUPED.model_copy(update={"others": 0.5}),
    prefill=Prefill(
        launch=4e-6,
        rate=0.95,
        softmax=1.8e-6,
        tile=5e-6,
        tail=0.5,
        heat=0.1,
        warm=1e-3,
    ),  # fmt: skip
    decode=Decode(
        launch=1e-5,
        merge=5e-6,
        block=1e-6,
        bandwidth=0.8,
        overlap=0.3,
        holds=1.0,
        cache=7.0,
        tile=1e-6,
        beside=True,
        row=0.5,
    ),  # fmt: skip
    collective=Collective(
        launch=8e-6,
        step=1e-6,
        at_once=0.3,
        begin=2e-5,
        bandwidth=0.8,
        in_switch=0.99,
        crowd=1.0,
        passes=0.5,
        pairs=2e-6,
    ),
    rows={name: Rows(launch=2e-6, number=5e-10, bandwidth=0.5) for name in ROWS},
)
UNDER_WAY = 20.0  # bytes a cycle and processor of the last cache, where copies are asynchronous
HIDDEN = 0.8  # rate of attention over the best where products hide the rest
FIXED = (
    "holds",
)  # tables of products have the weights of six layers in turn, those of answers one
HIGHEST = {"overlap": 1.0, "bandwidth": 1.25, "others": 1.0}


def start_of(sheet: str) -> Constants:
    """Where every fit on a device's rows begins.

    FlashAttention-2's softmax takes about 2,500 cycles of a block, and its tiles have half as many
    queries as blocks have keys: chosen among what the tables of an A100 and an L40S leave open, in
    view of an RTX 4090's profile (casys-kaist/LLMServingSim). Kernels of devices whose products
    are asynchronous hide it behind them, so that their rate alone is told apart, and call for
    answers apart.
    """
    found = of(START, sheet)
    if not device(sheet).asynchronous:
        return found
    hidden = found.prefill.model_copy(update={"softmax": 0.0, "rate": HIDDEN})
    apart = found.decode.model_copy(update={"row": 0.0, "cache": UNDER_WAY})
    return found.model_copy(update={"prefill": hidden, "decode": apart})


def of(found: Constants, sheet: str) -> Constants:
    """Constants told of another device: what a fit keeps of operators without rows."""
    on = device(sheet)
    power = (on.tdp or 0.0) / on.peaks.get("bfloat16", on.peaks.get("float16", np.inf))
    told = found.at_clock(on.clock)
    away = bool(found.device) and found.device != sheet and bool(found.elsewhere)
    intervals = found.elsewhere if away else found.intervals
    return told.model_copy(
        update={
            "device": sheet,
            "lent": found.device if away else found.lent,
            "kin": (),
            "elsewhere": {},
            "power": float(power),
            "intervals": intervals,
        }
    )


def quarter(row: Measured) -> int:
    """Which of four parts a row's group belongs to."""
    return zlib.crc32(row.group.encode()) % PARTS


def usable(rows: Sequence[Measured]) -> list[Measured]:
    """Rows whose printed time is fine enough and not the host's."""
    return [row for row in rows if not _coarse(row) and not row.group.startswith("network")]


def _coarse(row: Measured) -> bool:
    layer = row.group.startswith("layer")
    return layer and row.operator == "matmul" and row.seconds < NOISE


def fit(rows: Sequence[Measured], source: str, base: Constants, rounds: int = ROUNDS) -> Constants:
    """Constants fitted on all rows, with intervals from rows held out.

    An operator without rows keeps the constants and the interval of `base`. Raises BadInput where
    no operator has enough.
    """
    begin = start_of(base.device)
    found = base.model_copy(update={"source": source, "split": SPLIT})
    intervals, told = dict(base.intervals), False
    for name, mine in by_operator(rows).items():
        if name in ROWS:  # which find in the last cache what decoding finds there
            begin = begin.model_copy(update={"decode": found.decode})
        told = True
        intervals[name] = interval_of(held_out(mine, name, begin, rounds))
        fitted = fit_one(begin, name, mine, rounds)
        if name in ROWS:
            part = {"rows": {**found.rows, name: fitted.rows[name]}}
        else:
            part = {name: getattr(fitted, name)}
        found = found.model_copy(update=part)
    if not told:
        raise BadInput(
            f"fit: {len(rows)} rows, of no operator {FEWEST} in {PARTS} groups; add some"
        )
    return found.model_copy(update={"intervals": intervals})


def interval_of(wrong: np.ndarray) -> Interval:
    """Nine in ten of those errors."""
    low, high = within(wrong)
    return Interval(low=low, median=float(np.median(wrong)), high=high, rows=len(wrong))


def within(wrong: np.ndarray) -> tuple[float, float]:
    """Between which a further error lies nine times in ten, were it one of those: quantiles of as
    many and one (conformal prediction: Vovk, Gammerman and Shafer 2005)."""
    order, more = np.sort(wrong), len(wrong) + 1
    low, high = int(np.floor(SURE[0] * more)) - 1, int(np.ceil(SURE[1] * more)) - 1
    return float(order[max(low, 0)]), float(order[min(high, len(order) - 1)])


def by_operator(rows: Sequence[Measured]) -> dict[str, list[Measured]]:
    """The usable rows of each operator that has enough to hold some out."""
    rows = usable(rows)
    found = {name: [row for row in rows if called(row) == name] for name in OPERATORS}
    return {
        name: mine
        for name, mine in found.items()
        if len(mine) >= FEWEST and len({quarter(row) for row in mine}) == PARTS
    }


def held_out(
    rows: Sequence[Measured], name: str, start: Constants, rounds: int = ROUNDS
) -> np.ndarray:
    """ln(predicted / measured) of each row, by constants fitted without its quarter."""
    wrong = np.empty(len(rows))
    for part in range(PARTS):
        seen = [row for row in rows if quarter(row) != part]
        away = [index for index, row in enumerate(rows) if quarter(row) == part]
        fitted = fit_one(start, name, seen, rounds)
        wrong[away] = errors([rows[index] for index in away], fitted)
    return wrong


def fit_one(found: Constants, name: str, rows: Sequence[Measured], rounds: int) -> Constants:
    """`found` with the constants of one operator fitted on `rows`."""
    part: Any = found.rows[name] if name in ROWS else getattr(found, name)
    batches = Batches(rows)

    def made(values: Mapping[str, float]) -> Constants:
        low = {key: min(value, HIGHEST.get(key, value)) for key, value in values.items()}
        new = part.model_copy(update=low)
        if name in ROWS:
            return found.model_copy(update={"rows": {**found.rows, name: new}})
        return found.model_copy(update={name: new})

    kinds = [row.group.split()[0] for row in rows]
    weights = np.array([1.0 / kinds.count(kind) for kind in kinds])

    def off(values: Mapping[str, float]) -> float:
        now = made(values)
        return float((weights * np.abs(batches.errors(lambda _: now))).sum())

    start = {
        key: value
        for key, value in part
        if isinstance(value, float) and value > 0 and key not in FIXED
    }
    if start.get("softmax"):  # tables of one size of a head do not tell the two apart
        start = {k: v for k, v in start.items() if k not in ("rate", "softmax")}
    there = off(start)  # what no row depends on stays as it is
    start = {k: v for k, v in start.items() if off({**start, k: v * 1.5}) != there}

    def at(point: np.ndarray) -> dict[str, float]:
        return dict(zip(start, np.exp(point).tolist(), strict=True))

    first = point = np.log(list(start.values()))

    def height(point: np.ndarray) -> float:
        return off(at(point)) / weights.sum() + KEEPS * float(((point - first) ** 2).sum())

    for _ in range(2):  # a second start frees a simplex that shrank too early
        point = lowest(height, point, rounds=rounds)
    return made(at(point))
