"""Whether a checkpoint is of this very run, and all replicas taking it up.

What decides a run has to be equal; the steps and their decay may change while no step of either
schedule's decay has been done, because up to there both runs are the same.
"""

from pathlib import Path

import torch
from torch import Tensor
from torch.optim import AdamW

from engine.core.errors import BadInput
from engine.training.checkpoint import MOMENTS, Facts, Saved, load_checkpoint
from engine.training.replicas import Replicas

FREE = ("report", "evaluate", "checkpoint")  # change nothing that is learnt
SCHEDULE = ("steps", "decay")


def resumed(
    path: Path, facts: Facts, weights: dict[str, Tensor], optimizer: AdamW, replicas: Replicas
) -> Saved | None:
    """The first replica reads `path` into weights and optimiser, the others get them from it; None
    where there is nothing yet. Raises BadInput where the checkpoint is of another run."""
    found = None
    if replicas.rank == 0:
        found = load_checkpoint(path, weights, optimizer)
        if found is not None:
            require_same(path, found, facts)
    step = torch.tensor([-1.0 if found is None else float(found.step)], dtype=torch.float64)
    replicas.follow_first([step])
    if step < 0:
        return None
    if replicas.rank > 0:
        found = Saved(int(step), facts)
    for weight in weights.values():
        state = optimizer.state[weight]
        state.setdefault("step", step[0].float())
        for moment in MOMENTS:
            state.setdefault(moment, torch.zeros_like(weight))
        with torch.no_grad():
            replicas.follow_first([weight, *(state[moment] for moment in MOMENTS)])
    return found


def require_same(path: Path, saved: Saved, facts: Facts) -> None:
    """Raises BadInput naming the first thing in which the saved run is another."""
    require_equal(path, saved, {k: v for k, v in facts.items() if k not in SCHEDULE})
    changed = [name for name in SCHEDULE if saved.facts.get(name) != facts.get(name)]
    plateau = min(int(each["steps"]) - int(each["decay"]) for each in (saved.facts, facts))
    if changed and saved.step > plateau:
        told = " and ".join(f"{name} = {saved.facts[name]}" for name in SCHEDULE)
        raise BadInput(
            f"{path}: its {saved.step} steps reach into the decay, which began at {plateau}; "
            f"put back {told}, or train into another folder"
        )


def require_equal(path: Path, saved: Saved, facts: Facts) -> None:
    """The same where the schedule may not change either."""
    for name, ours in facts.items():
        theirs = saved.facts.get(name)
        if theirs != ours and name not in FREE:
            raise BadInput(
                f"{path}: made with {name} = {theirs}, this run has {ours}; "
                "put it back, or train into another folder"
            )
