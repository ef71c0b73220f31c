"""Resume check: whether a checkpoint is of this very run.

What decides a run has to be equal; the steps and their decay may change while no step of either
schedule's decay has been done, because up to there both runs are the same.
"""

from pathlib import Path

from engine.core.errors import BadInput
from engine.training.loop.checkpoint import Facts, Saved

FREE = ("report", "evaluate", "checkpoint")  # change nothing that is learnt
SCHEDULE = ("steps", "decay")


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
