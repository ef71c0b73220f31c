"""Trainer config: which model, on which tokens, written where, for how long, on what devices."""

from typing import Any

from engine.core.config import Config, knob, to_dict, update
from engine.core.errors import BadInput
from engine.distributed.device import DeviceKind
from engine.distributed.faults import read_fault
from engine.distributed.mesh import fitted
from engine.models.config import ModelConfig
from engine.models.loading.find import Found, find
from engine.training.loop.phases import NAMES
from engine.training.loop.settings import Training
from engine.training.parallel.sharding_config import ShardingConfig

FRESH_RATE, TRAINED_RATE = 1e-3, 1e-4  # peak learning rates
LIMIT = 300.0  # seconds
# Enough to see that all of it works, far from a useful model.
FAST = {"steps": 20, "warmup": 2, "decay": 5, "tokens": 512, "context": 64, "long_context": 64}


class TrainerConfig(Config):
    """One training. `model` and `data` are places on every machine that takes part, `out` is a
    folder that all of them share."""

    model: str = knob(doc="A model folder, a config.json, or the name of a known architecture")
    data: str = knob(doc="Tokens (.npy, .bin) or a text to learn from")
    out: str = knob(doc="Folder that the trained model, its checkpoint and its run go into")
    validation: str = knob("", "Tokens or text to judge by; empty: the end of the data")
    held_out: float = knob(0.05, "Share of the data kept to judge by", low=0.0, high=0.5)
    judged: int = knob(65_536, "Tokens judged by at most", low=64, high=1 << 30, unit="tokens")
    random: bool = knob(False, "Begin with random weights even where the folder has some")
    device: DeviceKind = knob("cpu", "What ranks compute on; cuda: a GPU each, joined by NCCL")
    threads: int = knob(0, "Of each process; 0: all processors shared out", low=0, high=1024)
    limit: float = knob(LIMIT, "Longest that a phase of a step may take with several ranks",
                        low=0.5, high=1e6, unit="s")  # fmt: skip
    port: int = knob(0, "Where ranks meet on this machine; 0: any free one", low=0, high=65_535)
    ray: str | None = knob(None, "Ranks as actors of the Ray cluster there; empty: a local one")
    fault: str = knob("", "Kill a rank to see what happens: RANK:PHASE:STEP")
    parallel: ShardingConfig = knob(ShardingConfig(), "How it is dealt to ranks")
    training: Training = knob(Training(), "How it learns")

    @property
    def ranks(self) -> int:
        """Processes. Replicas that share every step are the mesh's `data`."""
        return self.parallel.mesh.ranks

    @property
    def alone(self) -> bool:
        """Whether this process does it all, by the plain forward."""
        plain = self.ray is None and self.device == "cpu"
        return plain and self.ranks == 1 and self.parallel.microbatches == 1


def on_ranks(config: TrainerConfig, ranks: int) -> TrainerConfig:
    """The same on so many processes: those that its mesh leaves over are replicas.

    Raises BadInput where the mesh does not divide them.
    """
    mesh = config.parallel.mesh
    if ranks < 1:
        raise BadInput(f"ranks {ranks}: at least 1")
    if mesh.ranks == ranks:
        return config
    if mesh.data > 1:
        raise BadInput(
            f"mesh {mesh}: {mesh.ranks} ranks, and {ranks} are asked for; leave out data, "
            "or ask for as many"
        )
    whole = fitted(ranks, pipeline=mesh.pipeline, context=mesh.context, tensor=mesh.tensor)
    return update(config, {"parallel.mesh": to_dict(whole)})


def has_weights(found: Found) -> bool:
    """Whether there is anything to begin with."""
    return found.folder is not None and any(found.folder.glob("*.safetensors"))


def settings_for(model: str, random: bool, fast: bool) -> Training:
    """Settings to begin with, which fit the model. Raises BadInput for an unknown one."""
    found = find(model)
    window = min(512, found.config.max_positions)
    rate = FRESH_RATE if random or not has_weights(found) else TRAINED_RATE
    chosen: dict[str, Any] = {
        "steps": 1000, "warmup": 50, "decay": 200, "rate": rate, "context": window,
        "long_context": window, "checkpoint": 50,
    } | (FAST if fast else {})  # fmt: skip
    for name in ("context", "long_context"):
        chosen[name] = min(chosen[name], window)
    return Training(**chosen)


def require_fit(config: TrainerConfig, model: ModelConfig, tokens: int) -> None:
    """Raises BadInput where windows do not fit the model, the data or the ranks."""
    longest = max(config.training.context, config.training.long_context)
    if longest > model.max_positions:
        raise BadInput(
            f"context {longest}: longer than the model's {model.max_positions} positions; "
            f"--set context={model.max_positions} --set long_context={model.max_positions}"
        )
    if tokens < longest + 1:
        raise BadInput(
            f"{config.data}: {tokens} tokens to learn from, fewer than one window of {longest}; "
            "give more text or a shorter context"
        )
    for window in (config.training.context, config.training.long_context):
        _require_dealt(config, model, window)
    _require_struck(config)


def _require_struck(config: TrainerConfig) -> None:
    """Raises BadInput where the fault that is asked for can never strike."""
    if not config.fault:
        return
    fault, recipe = read_fault(config.fault), config.training
    every = {"validation": recipe.evaluate, "checkpoint": recipe.checkpoint,
             "checkpoint write": recipe.checkpoint}.get(fault.phase, 1)  # fmt: skip
    done, why = fault.step + 1, ""
    if config.alone:
        why = "one process has no other ranks; give --ranks 2 or --mesh"
    elif fault.rank >= config.ranks:
        why = f"ranks are numbered 0 to {config.ranks - 1}"
    elif fault.step >= recipe.steps:
        why = f"steps are numbered 0 to {recipe.steps - 1}"
    elif fault.phase not in NAMES:
        why = f"no such phase; phases: {', '.join(NAMES)}"
    elif fault.phase == "resume" and fault.step:
        why = "ranks resume in step 0 only"
    elif done % every and done != recipe.steps:
        first = min(every, recipe.steps) - 1
        why = f"that step has no {fault.phase}; step {first} is the first that does"
    if why:
        raise BadInput(f"fault {config.fault!r}: {why}")


def _require_dealt(config: TrainerConfig, model: ModelConfig, window: int) -> None:
    """Raises BadInput where windows of that length cannot be dealt out evenly."""
    parallel, tokens = config.parallel, config.training.tokens
    rows, parts = max(1, tokens // window), parallel.mesh.data * parallel.microbatches
    if rows % parts:
        raise BadInput(
            f"{parallel.mesh.data} replicas of {parallel.microbatches} microbatches: a step of "
            f"{tokens} tokens has {rows} windows of {window}, which they cannot share evenly; "
            f"try tokens = {window * parts * -(-rows // parts)}"
        )
    try:
        parallel.spans(window)
    except BadInput as fault:
        raise BadInput(
            f"windows of {window} on {parallel.mesh.context} context ranks: {fault}"
        ) from None
    parallel.fits(model, rows, window)
