"""What a person says of a training: which model, on which tokens, where to, how long, on what."""

from typing import Any

from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.models.config import ModelConfig
from engine.models.find import Found, find
from engine.training.language import require_rows
from engine.training.settings import Training

FRESH_RATE, TRAINED_RATE = 1e-3, 1e-4  # peak learning rates
LIMIT = 300.0  # seconds
# Enough to see that all of it works, far from a useful model.
FAST = {"steps": 20, "warmup": 2, "decay": 5, "tokens": 512, "context": 64, "long_context": 64}


class TrainerConfig(Config):
    """One training. `model`, `data` and `out` are places on every machine that takes part."""

    model: str = knob(doc="A model folder, a config.json, or the name of a known architecture")
    data: str = knob(doc="Tokens (.npy, .bin) or a text to learn from")
    out: str = knob(doc="Folder that the trained model, its checkpoint and its run go into")
    validation: str = knob("", "Tokens or text to judge by; empty: the end of the data")
    held_out: float = knob(0.05, "Share of the data kept to judge by", low=0.0, high=0.5)
    judged: int = knob(65_536, "Tokens judged by at most", low=64, high=1 << 30, unit="tokens")
    random: bool = knob(False, "Begin with random weights even where the folder has some")
    ranks: int = knob(1, "Processes that share every step", low=1, high=4096)
    threads: int = knob(0, "Of each process; 0: all processors shared out", low=0, high=1024)
    limit: float = knob(LIMIT, "Longest that a phase of a step may take with several ranks",
                        low=0.5, high=1e6, unit="s")  # fmt: skip
    port: int = knob(0, "Where ranks meet on this machine; 0: any free one", low=0, high=65_535)
    ray: str | None = knob(None, "Ranks as actors of the Ray cluster there; empty: a local one")
    fault: str = knob("", "Kill a rank to see what happens: RANK:PHASE:STEP")
    training: Training = knob(Training(), "How it learns")


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
    require_rows(config.training, config.ranks)
