"""A real run and its modelled twin on this machine, side by side, with the model's error.

The twin gets the same prompts and arrivals and answers of the same lengths, under the virtual
clock. Its four calibration knobs are fitted to real steps of other requests, run before and after;
beside it stands a twin without calibration, at this machine's measured roofs. The real run is made
twice, since no model can be nearer to a machine than the machine is to itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.measure import served
from engine.core.run import Run
from engine.hardware.device import Device
from engine.hardware.measure import measure
from engine.hardware.roofs import THIS_MACHINE
from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.step_cost import StepCost
from engine.inference.executors.modelled import Modelled
from engine.inference.requests.request import Request
from engine.inference.run import run
from engine.inference.workloads.poisson import Poisson
from engine.inference.workloads.replay import replay
from engine.inference.workloads.synthetic import Lengths
from engine.inference.workloads.workload import Source
from engine.models.loading.find import find
from engine.models.text.tokenizer import Tokenizer
from workbench.real_and_modelled.calibration import Fit, fit
from workbench.real_and_modelled.rows import calibration_rows, figures, step_errors, table
from workbench.real_and_modelled.steps_taken import steps_taken

__all__ = ["Comparison", "compare", "lay", "table"]
Say = Callable[[str], None]
SIZES = {False: (16, 48), True: (64, 128)}  # requests and median answer, quick and full


@dataclass(frozen=True)
class Comparison:
    """Rows of figures, the calibration they rest on, and the logs of all runs."""

    rows: list[dict[str, Any]]
    calibration: Fit
    device: Device
    real: Log
    again: Log
    modelled: Log
    bare: Log


def compare(config: InferenceConfig, say: Say = lambda text: None) -> list[dict[str, Any]]:
    """Rows of `lay`, as the command line prints them."""
    return lay(config, say).rows


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
    if config.speculation.drafts:
        raise BadInput("compare: reads one token a request and step; set speculation=none")
    requests = requests_of(config)  # a missing model or trace is said before anything is measured
    if fresh:
        say("measuring this machine")
    device = measure(refresh=fresh)
    say("calibrating: a real run of other requests")
    _run(calibrating(config))  # kernels of every batch compile or load here
    others = [_run(calibrating(config))]
    say("the real run")
    real = _run(config)
    say("calibrating, and the real run once more")
    others.append(_run(calibrating(config)))
    again = _run(config)
    found = calibrate(config, device, *others)
    say("its modelled twins")
    twin = replay(requests, answers_of(real))
    choice = Modelled(device=THIS_MACHINE, **found.knobs)
    plain = Modelled(device=THIS_MACHINE, per_step=0.0, memory=1.0, arithmetic=1.0)
    modelled, bare = (
        _run(config.model_copy(update={"executor": executor, "workload": twin}))
        for executor in (choice, plain)
    )
    rows = figures(real, again, modelled, bare)
    rows += step_errors(config, device, (real, again), choice, plain)
    rows += calibration_rows(found)
    return Comparison(rows, found, device, real, again, modelled, bare)


def _run(config: InferenceConfig) -> Log:
    return Run.execute(run, config, seed=config.seed).log


def calibrating(config: InferenceConfig, rate: float = 0.0, engines: int = 1) -> InferenceConfig:
    """The same engine with other requests, enough for so many `engines`, `rate` a second (0: all at
    once), of lengths the model can take."""
    context = find(config.model).config.max_positions
    workload = Poisson(
        count=engines * min(32, 2 * config.max_running),
        rate=rate,
        prompt=_lengths(min(64, context // 8), context // 3),
        output=_lengths(min(48, context // 8), context // 3),
    )
    return config.model_copy(update={"workload": workload, "seed": config.seed + 1})


def _lengths(median: int, longest: int) -> Lengths:
    return Lengths(median=max(1, median), spread=0.8, longest=max(1, longest))


def calibrate(config: InferenceConfig, device: Device, *logs: Log) -> Fit:
    """The calibration knobs from the steps of real runs."""
    taken = [step for log in logs for step in steps_taken(log)]
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
