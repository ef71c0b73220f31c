"""A real run and its modelled twin on this machine, side by side, with the model's error.

The twin gets the same prompts and arrivals and answers of the same lengths, under the virtual
clock. Its four calibration knobs are fitted to steps of another real run, of other requests, made
just before; beside it stands a twin without calibration, at this machine's measured roofs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.core.events import Span
from engine.core.log import Log
from engine.core.measure import served, serving
from engine.core.run import Run
from engine.hardware.device import Device
from engine.hardware.measure import measure
from engine.inference.config import InferenceConfig
from engine.inference.executor_modelled import THIS_MACHINE
from engine.inference.executors.modelled import Modelled
from engine.inference.request import Request
from engine.inference.run import run
from engine.inference.step_cost import StepCost
from engine.inference.synthetic import Lengths
from engine.inference.workload import Source
from engine.inference.workloads.poisson import Poisson
from engine.inference.workloads.replay import replay
from engine.models.find import find
from engine.models.tokenizer import Tokenizer
from widgets.theme import figure
from workbench.calibration import Fit, errors, fit
from workbench.steps_taken import steps_taken

Say = Callable[[str], None]
VALUES, ERRORS = ("real", "modelled", "roofs"), ("error", "roofs_error")
SIZES = {False: (16, 48), True: (64, 128)}  # requests and median answer, quick and full


@dataclass(frozen=True)
class Comparison:
    """Rows of figures, the calibration they rest on, and the three logs."""

    rows: list[dict[str, Any]]
    calibration: Fit
    device: Device
    real: Log
    modelled: Log
    bare: Log


def compare(
    config: InferenceConfig | None = None, full: bool = False, say: Say = lambda text: None
) -> list[dict[str, Any]]:
    """Rows of `lay`, as the command line prints them."""
    return lay(config or usual(full), say).rows


def usual(full: bool = False) -> InferenceConfig:
    """What is compared where nothing else is asked: the shipped model, mixed lengths, at once."""
    count, answer = SIZES[full]
    lengths = {"prompt": _lengths(64, 400), "output": _lengths(answer, 256)}
    return InferenceConfig(workload=Poisson(count=count, rate=0.0, **lengths), max_running=16)


def lay(config: InferenceConfig, say: Say = lambda text: None, fresh: bool = True) -> Comparison:
    """Run `config` for real, then its twins. `fresh` measures this machine again first.

    Raises BadInput for a config whose real run leaves nothing to compare.
    """
    if config.executor.kind != "real":
        raise BadInput("compare: needs executor=real; its twin is modelled by itself")
    if config.sampling.n > 1:
        raise BadInput("compare: takes one sample of each prompt; set sampling.n=1")
    if fresh:
        say("measuring this machine")
    device = measure(refresh=fresh)
    say("calibrating: a real run of other requests")
    _run(calibrating(config, 2))  # kernels compile and caches fill here
    found = calibrate(config, device, _run(calibrating(config)))
    say("the real run")
    real = _run(config)
    say("its modelled twins")
    twin = replay(requests_of(config), answers_of(real))
    choice = Modelled(device=THIS_MACHINE, **found.knobs)
    plain = Modelled(device=THIS_MACHINE, per_step=0.0, memory=1.0, arithmetic=1.0)
    modelled, bare = (
        _run(config.model_copy(update={"executor": executor, "workload": twin}))
        for executor in (choice, plain)
    )
    rows = figures(real, modelled, bare)
    rows += step_errors(config, device, real, choice, plain)
    rows += calibration_rows(found)
    return Comparison(rows, found, device, real, modelled, bare)


def _run(config: InferenceConfig) -> Log:
    return Run.execute(run, config, seed=config.seed).log


def calibrating(config: InferenceConfig, count: int = 0) -> InferenceConfig:
    """The same engine with other requests, all at once, of lengths the model can take."""
    context = find(config.model).config.max_positions
    workload = Poisson(
        count=count or min(32, 2 * config.max_running),
        rate=0.0,
        prompt=_lengths(min(64, context // 8), context // 3),
        output=_lengths(min(48, context // 8), context // 3),
    )
    return config.model_copy(update={"workload": workload, "seed": config.seed + 1})


def _lengths(median: int, longest: int) -> Lengths:
    return Lengths(median=max(1, median), spread=0.8, longest=max(1, longest))


def calibrate(config: InferenceConfig, device: Device, log: Log) -> Fit:
    """The calibration knobs from one real run's steps."""
    taken = steps_taken(log)
    if len(taken) < 8:
        raise BadInput("compare: fewer than 8 steps to calibrate on; raise max_running or pages")
    return fit(taken, StepCost(find(config.model).config, device.at_best(), config.dtype))


def requests_of(config: InferenceConfig) -> list[Request]:
    """The workload's requests in order of arrival, which is the order of their ids."""
    found = find(config.model)
    encode = None
    if config.workload.speaks and found.folder is not None:
        encode = Tokenizer(found.folder).encode
    source = Source(found.config.vocab, found.config.max_positions, config.sampling, encode)
    requests = config.workload.requests(source, config.seed)
    return sorted(requests, key=lambda request: request.arrival)


def answers_of(log: Log) -> dict[int, int]:
    """Tokens each request got, by its number."""
    return {int(name[1:]): len(request.tokens) for name, request in served(log).items()}


def figures(real: Log, modelled: Log, bare: Log) -> list[dict[str, Any]]:
    """What the three runs came to."""
    columns = [_measures(log) for log in (real, modelled, bare)]
    return [
        _row(name, unit, value, columns[1][name, unit], columns[2][name, unit])
        for (name, unit), value in columns[0].items()
    ]


def _measures(log: Log) -> dict[tuple[str, str], float]:
    got = serving(log)
    first, each, whole = got.time_to_first_token, got.time_per_output_token, got.end_to_end
    return {
        ("generated tokens", "tok/s"): got.tokens_per_second,
        ("makespan", "s"): got.makespan,
        ("time to first token, median", "s"): first.p50,
        ("time to first token, 90%", "s"): first.p90,
        ("time per output token, median", "s"): each.p50,
        ("time per output token, 90%", "s"): each.p90,
        ("end to end, median", "s"): whole.p50,
        ("end to end, 90%", "s"): whole.p90,
        ("tokens generated", ""): got.tokens,
        ("steps", ""): sum(s.name == "step" for s in log.of(Span)),
        ("preemptions", ""): got.preemptions,
    }


def _row(measure: str, unit: str, real: float, modelled: float, bare: float) -> dict[str, Any]:
    return {
        "measure": measure,
        "unit": unit,
        "real": real,
        "modelled": modelled,
        "error": _error(modelled, real),
        "roofs": bare,
        "roofs_error": _error(bare, real),
    }


def _error(modelled: float, real: float) -> float | None:
    """modelled ÷ real - 1; None where real is nothing."""
    return modelled / real - 1 if real else (0.0 if modelled == real else None)


def step_errors(
    config: InferenceConfig, device: Device, real: Log, choice: Modelled, plain: Modelled
) -> list[dict[str, Any]]:
    """How far each real step's time is from what either model says of that very step."""
    taken, model = steps_taken(real), find(config.model).config
    if not taken:
        raise BadInput("compare: the real run took one step or none; ask for longer answers")
    off = [
        np.abs(errors(taken, StepCost(model, one.calibrated(device), config.dtype), one))
        for one in (choice, plain)
    ]
    return [
        {
            "measure": f"error of a step's time, {name}",
            "unit": "",
            "real": None,
            "modelled": None,
            "error": float(np.quantile(off[0], share)),
            "roofs": None,
            "roofs_error": float(np.quantile(off[1], share)),
        }
        for name, share in (("median", 0.5), ("90%", 0.9))
    ]


def calibration_rows(found: Fit) -> list[dict[str, Any]]:
    """The fitted knobs, which are measured ones, and how many steps they rest on."""
    units = {"per_step": "s", "per_sequence": "s", "memory": "", "arithmetic": ""}
    told = {f"calibrated {name}": (units[name], value) for name, value in found.knobs.items()}
    told["steps calibrated on"] = ("", float(found.steps))
    nothing = dict.fromkeys(("modelled", "error", "roofs", "roofs_error"))
    return [
        {"measure": name, "unit": unit, "real": value, **nothing}
        for name, (unit, value) in told.items()
    ]


def table(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Head and rows for a person. Errors are modelled ÷ real - 1."""
    head = ("measure", "real", "modelled", "error", "roofs alone", "error of roofs alone")
    return [head, *(_cells(row) for row in rows)]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    shown = [figure(row[k], row["unit"]) if row[k] is not None else "" for k in VALUES]
    off = [f"{100 * row[k]:+.1f}%" if row[k] is not None else "" for k in ERRORS]
    return row["measure"], shown[0], shown[1], off[0], shown[2], off[1]
