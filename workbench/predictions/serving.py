"""A described serving run's prediction: TTFT, TPOT, throughput, memory and launch flags."""

from collections.abc import Callable, Mapping

import numpy as np

from engine.inference.serving_time.described import ServingRun
from engine.inference.serving_time.interval import Figure, played
from engine.inference.serving_time.replica import Replicas, Times
from workbench.predictions.bill import bill
from workbench.predictions.prediction import Estimate, Prediction

KIND = "serving"
VLLM = {
    "tensor": "--tensor-parallel-size", "pipeline": "--pipeline-parallel-size",
    "data": "--data-parallel-size", "running": "--max-num-seqs",
    "tokens": "--max-num-batched-tokens", "memory": "--gpu-memory-utilization",
    "page": "--block-size", "dtype": "--dtype",
}  # fmt: skip
SGLANG = {
    "tensor": "--tp-size", "pipeline": "--pp-size", "data": "--dp-size",
    "running": "--max-running-requests", "tokens": "--chunked-prefill-size",
    "memory": "--mem-fraction-static", "page": "--page-size", "dtype": "--dtype",
}  # fmt: skip


def step(times: Times) -> float:
    """Seconds of an average step."""
    return sum(times.parts.values())


def _at(name: str, share: float | None) -> Figure:
    def figure(times: Times) -> float:
        seconds_R: np.ndarray = getattr(times, name)
        seconds_R = seconds_R[np.isfinite(seconds_R)]
        if not len(seconds_R):
            return 0.0
        return float(seconds_R.mean() if share is None else np.quantile(seconds_R, share))

    return figure


def throughput(times: Times) -> float:
    """Tokens answered a second, from the first arrival to the last token."""
    return times.tokens / times.seconds


FIGURES: Mapping[str, tuple[Callable[[Times], float], str]] = {
    "step": (step, "s"),
    "TTFT mean": (_at("ttft_R", None), "s"),
    "TTFT median": (_at("ttft_R", 0.5), "s"),
    "TTFT p99": (_at("ttft_R", 0.99), "s"),
    "TPOT mean": (_at("tpot_R", None), "s"),
    "TPOT median": (_at("tpot_R", 0.5), "s"),
    "TPOT p99": (_at("tpot_R", 0.99), "s"),
    "output tokens per second": (throughput, "/s"),
    "requests per second": (lambda times: len(times.ttft_R) / times.seconds, "/s"),
}


def predict(run: ServingRun) -> Prediction:
    """What serving the run's load will come to. Raises BadInput where it does not fit together."""
    replicas = Replicas(run)
    found = played(replicas, run.load.drawn())
    memory, times = replicas.memory, found.times
    figures = {name: Estimate(*found.of(figure), unit) for name, (figure, unit) in FIGURES.items()}
    held = {name: getattr(memory, name) for name in ("weights", "cache", "activations", "engine")}
    whole = sum(held.values())
    figures["memory"] = Estimate(whole, whole, whole, "B")
    each = figures["output tokens per second"].per(1.0, "s")
    sheet, devices = run.cluster.sheet(), run.split.ranks.count
    figures |= bill(each, 1.0, "output token", devices, sheet, run.cluster.price)
    seconds = step(times)
    lifted = {name: seconds - part for name, part in times.parts.items() if part > 0}
    return Prediction(
        KIND, said(run), figures, dict(times.parts), {},
        dict(sorted(lifted.items(), key=lambda each: each[1])), held, notes(run, replicas, times),
        commands(run),
    )  # fmt: skip


def said(run: ServingRun) -> str:
    """The run in a line."""
    split = run.split
    sizes = {"tensor": split.tensor, "pipeline": split.pipeline, "data": split.data}
    parts = ", ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
    load = run.load.trace or f"{run.load.requests:,} requests at {run.load.rate:g} a second"
    return (
        f"{run.model} on {split.ranks.count} {run.cluster.sheet().name}"
        f"{': ' + parts if parts else ''}{', expert parallel' if split.expert else ''}; "
        f"{run.engine.name}, at most {run.engine.running} requests and {run.engine.tokens:,} "
        f"tokens a step; {load}"
    )


def notes(run: ServingRun, replicas: Replicas, times: Times) -> tuple[str, ...]:
    """What a reader must know of it."""
    busy = times.steps * step(times) / run.split.data / times.seconds
    found = [
        f"{replicas.memory.blocks:,} blocks of {run.engine.page} tokens on each data rank; "
        f"{times.preempted:,} preemptions in {times.steps:,} steps; devices are at work "
        f"{busy:.0%} of the time"
    ]
    constants = replicas.constants
    if constants is not None and constants.device != run.cluster.device:
        found.append(
            f"{run.cluster.sheet().name} was not measured: constants of "
            f"{constants.device or constants.slug}, intervals of devices left out of a fit"
        )
    elif constants is not None and constants.lent:
        found.append(
            f"{run.cluster.sheet().name} was measured in part: all else by constants of "
            f"{constants.lent}, intervals of devices left out of a fit"
        )
    return tuple(found)


def commands(run: ServingRun) -> tuple[str, ...]:
    """How engines are started with its limits and ranks."""
    return (
        f"vllm serve {run.model} {flags(run, VLLM)}",
        f"python -m sglang.launch_server --model-path {run.model} {flags(run, SGLANG)}",
    )


def flags(run: ServingRun, names: Mapping[str, str]) -> str:
    """The run's limits and ranks as an engine's command line."""
    split, engine = run.split, run.engine
    values = {
        "tensor": split.tensor, "pipeline": split.pipeline, "data": split.data,
        "running": engine.running, "tokens": engine.tokens, "memory": engine.memory,
        "page": engine.page, "dtype": run.dtype,
    }  # fmt: skip
    told = [
        f"{names[name]} {value}" for name, value in values.items()
        if name not in ("tensor", "pipeline", "data") or value != 1
    ]  # fmt: skip
    if split.expert:
        experts = f"--ep-size {split.ranks.sharing}"
        told.append("--enable-expert-parallel" if names is VLLM else experts)
    return " ".join(told)
