"""Published rows as knob changes, and what the claims of the Megatron-LM study are judged by."""

import tomllib
from functools import cache
from typing import Any

import numpy as np

from engine.core.config import update
from engine.core.paths import dataset
from engine.training.pipeline.config import PipelineConfig
from engine.training.plan.memory import peaks
from engine.training.plan.times import timed

GIB = 2.0**30
VOCABULARY, SEQUENCE = 51_200, 2_048
Row = dict[str, Any]


@cache
def rows(table: str) -> tuple[Row, ...]:
    """`weak_scaling` or `recomputation` of datasets/megatron.toml."""
    return tuple(tomllib.loads(dataset("megatron.toml").read_text())[table])


@cache
def bubbles() -> tuple[Row, ...]:
    """The rows of datasets/zero_bubble.toml, each with its model's shape."""
    told = tomllib.loads(dataset("zero_bubble.toml").read_text())
    return tuple({**row, **told["shapes"][row["model"]]} for row in told["rows"])


def changes(row: Row, recompute: str = "full", sequence_parallel: bool = False) -> Row:
    """Knob changes that set up a published run; what they leave alone stays as it is."""
    data = row["devices"] // (row["tensor"] * row["pipeline"])
    turned = {
        "ranks": row["pipeline"],
        "microbatches": row["batch"] // (data * row["microbatch"]),
        "schedule": "interleaved_1f1b" if row["chunks"] > 1 else "1f1b",
        "memory_limit": 0.0,
        "passes.data": data,
        "passes.recompute": recompute,
        "passes.sequence_parallel": sequence_parallel,
    }
    if row["chunks"] > 1:
        turned["schedule.chunks"] = row["chunks"]
    same = ("hidden", "layers", "heads", "tensor", "microbatch")
    return {**turned, **{f"passes.{name}": row[name] for name in same}}


def flops(row: Row) -> float:
    """Of a step with full recomputation (2104.04473, equation 3)."""
    h, layers = row["hidden"], row["layers"]
    more = 1 + SEQUENCE / (6 * h) + VOCABULARY / (16 * layers * h)
    return 96.0 * row["batch"] * SEQUENCE * layers * h * h * more


def published(row: Row) -> float:
    """Seconds of a weak-scaling row's step."""
    return flops(row) / (row["devices"] * row["teraflops"] * 1e12)


def predicted(config: PipelineConfig) -> tuple[float, float]:
    """(seconds of a step, most bytes of activations on any rank), without the events of a run."""
    job = config.job()
    times = timed(job.plan, job.costs)
    most = peaks(times.columns, job.plan.chunks, job.share.kept).max()
    return times.end, float(most) * job.share.activations


def time_errors(config: PipelineConfig) -> dict[str, float]:
    """Relative error of the predicted step of all 18 published runs."""
    found = {}
    for row in rows("weak_scaling"):
        seconds, _ = predicted(update(config, changes(row)))
        found[row["model"]] = seconds / published(row) - 1
    for row in rows("recomputation"):
        for how, split in (("full", False), ("selective", True)):
            seconds, _ = predicted(update(config, changes(row, how, split)))
            found[f"{row['model']} {how}"] = seconds / row[f"seconds_{how}"] - 1
    return found


def constant_errors() -> dict[str, float]:
    """The same of the plainest model: one rate of a device, fitted to the same rows by the same
    squared error of log time, at the flops that each run executes."""
    of = [row["teraflops"] for row in rows("weak_scaling") if row["fitted"]]
    rate = 1e12 * float(np.exp(np.mean(np.log(of))))
    found = {
        row["model"]: flops(row) / (row["devices"] * rate) / published(row) - 1
        for row in rows("weak_scaling")
    }
    for row in rows("recomputation"):
        for how, work in (("full", flops(row)), ("selective", scores_again(row))):
            seconds = work / (row["devices"] * rate)
            found[f"{row['model']} {how}"] = seconds / row[f"seconds_{how}"] - 1
    return found


def scores_again(row: Row) -> float:
    """Flops of a step that computes nothing but attention's scores again (2205.05198, appendix A):
    three forwards of everything, and one more of 4 B s² l h."""
    h, layers = row["hidden"], row["layers"]
    each = 24.0 * row["batch"] * SEQUENCE * layers * h * h
    return each * (3 * (1 + VOCABULARY / (12 * layers * h)) + 4 * SEQUENCE / (6 * h))


def memory_errors(config: PipelineConfig) -> list[float]:
    """Relative errors of states and of activations (none, selective) of the four models."""
    found = []
    for row in rows("recomputation"):
        for how, split in (("none", False), ("selective", True)):
            turned = update(config, changes(row, how, split))
            _, activations = predicted(turned)
            found.append(activations / GIB / row[f"activations_{how}_gib"] - 1)
        share = turned.job().share
        states = share.weights + share.gradients + share.optimiser
        found.append(states / GIB / row["states_gib"] - 1)
    return found


def pass_times(row: Row) -> Row:
    """Knob changes for a row of the zero-bubble tables; times come in milliseconds."""
    return {
        "ranks": row["ranks"],
        "microbatches": row["microbatches"],
        "passes": "given",
        "passes.forward": row["forward"] / 1e3,
        "passes.backward_input": row["backward_input"] / 1e3,
        "passes.backward_weight": row["backward_weight"] / 1e3,
        "passes.kept": kept(row),
        "wires.latency": row["transfer"] / 1e3,
        "wires.between_latency": row["transfer"] / 1e3,
    }


def kept(row: Row) -> float:
    """Share of a microbatch's activations that the weights' backward needs: 32 h of 34 h + 5 a s
    for each token and layer (2401.10241, section 2.3)."""
    h = row["hidden"]
    return float(32 * h / (34 * h + 5 * row["heads"] * 1024))


def mean(values: list[float]) -> float:
    return float(np.mean(np.abs(values)))
