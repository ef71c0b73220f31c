"""Claims asked for over trainings, one after another: models made where they are not kept yet."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from engine.core.errors import BadInput
from engine.core.paths import own_cache
from workbench.claim import Changes, Taught
from workbench.study import Study
from workbench.trainings.judged import OWN, OverTrainings, judge_over
from workbench.trainings.trained_again import in_order, train_again

FOLDER = "trainings"  # of this machine's own cache


def over_trainings(
    studies: Sequence[Study],
    count: int,
    changes: Changes,
    *,
    fast: bool,
    seed: int = 0,
    only: Collection[str] = (),
    train: bool = True,
    fresh: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> Iterator[OverTrainings]:
    """Every claim about taught models over so many trainings of each, or of those named by `only`.

    `train`: make those that are not kept, or with `fresh` all. Raises BadInput for a claim that
    rests on none of `only`.
    """
    folder = own_cache() / FOLDER
    for study in studies:
        for claim in study.claims:
            if claim.taught is None:
                continue
            again = claim.taught.only(only)
            if not again.names:
                raise BadInput(f"--only {', '.join(only)}: no model of {study.slug} / {claim.id}")
            try:
                lacks = _made(folder, again, count, tell, fresh) if train else ""
                found = judge_over(study, claim, again, count, folder, changes, fast, seed, tell)
            except KeyboardInterrupt:
                tell("stopped; what was trained is kept: the same command goes on from there")
                raise
            yield replace(found, lacks=lacks or found.lacks)


def _made(folder: Path, again: Taught, count: int, tell: Callable[[str], None], fresh: bool) -> str:
    """Make the trainings that are not kept; why one could not be made, "" of all."""
    try:
        for number in range(OWN + 1, count):
            for name in in_order(again.names):
                train_again(folder, name, number, again.names, tell, fresh)
    except BadInput as fault:
        return str(fault)
    return ""
