"""A claim judged over several trainings: of each its own check, of all of them one figure.

In come outcomes by the seed of training, out come the figure over them and the finding. Everything
else a check draws (problems, tokens) has the same seed each time, so that what differs is what was
learnt; rivals that were taught, too, have the seed of what is held against them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.claim import Changes, Claim, Outcome, Taught, judge
from workbench.finding import Figure, Finding
from workbench.study import Study, here
from workbench.trainings.trained_again import SAME, kept, recipe_of

LEAST = 5  # trainings, under which nothing is said of others
OWN = 0  # the seed of the shipped models


@dataclass(frozen=True)
class OverTrainings:
    """What a claim came to over trainings: `judged`, an outcome by seed, of `wanted` seeds; `lacks`
    says why there are fewer. `again`: the models that were trained again, the others stay as they
    are shipped."""

    slug: str
    claim: Claim
    fast: bool
    wanted: int
    judged: tuple[tuple[int, Outcome], ...]
    again: Taught
    lacks: str = ""
    machine: str = ""

    @property
    def figure(self) -> Figure | None:
        """The figure over them; None of too few."""
        figures = [outcome.figure for _, outcome in self.judged if outcome.figure is not None]
        enough = len(figures) == len(self.judged) and len(figures) >= LEAST
        return over(figures) if enough else None

    @property
    def outcome(self) -> Outcome:
        """The figure as an outcome; yes where all of its interval bears that, and what the check
        asks for besides its figure holds of every training."""
        needed = self.judged[0][1].needed if self.judged else None
        holds = self.figure is not None and not self.lost_besides
        return self.claim.borne(Outcome("", "", holds, figure=self.figure, needed=needed))

    @property
    def lost_besides(self) -> tuple[int, ...]:
        """Seeds whose check says no though their figures would bear a yes: it asks for more, and
        that is not in the figure over trainings."""
        return tuple(seed for seed, outcome in self.judged if self.claim.lacks_besides(outcome))

    @property
    def finding(self) -> Finding:
        """What the figure says of the paper's."""
        return self.claim.came_to(self.outcome)

    def row(self) -> dict[str, Any]:
        """As the record and `workbench check --json` have it."""
        claim, figure = self.claim, self.figure
        assert claim.taught is not None
        return {
            "slug": self.slug,
            "claim": claim.id,
            "grade": claim.grade,
            "fast": self.fast,
            "models": begun_as(self.again),
            "once": [name for name in claim.taught.names if name not in self.again.names],
            "wanted": self.wanted,
            "trainings": [self._training(*each) for each in self.judged],
            "figure": figure.row() if figure else None,
            "reported": claim.reported.row() if claim.reported else None,
            "needed": self.outcome.needed,
            "holds": self.outcome.holds,
            "finding": self.finding,
            "lacks": self.lacks,
            "machine": self.machine,
        }

    def _training(self, seed: int, outcome: Outcome) -> dict[str, Any]:
        return {
            "seed": seed,
            "figure": outcome.figure.row() if outcome.figure else None,
            "holds": outcome.holds,
            "finding": self.claim.came_to(outcome),
            "measured": outcome.measured,
            "caution": outcome.caution,
        }


def over(figures: Sequence[Figure]) -> Figure:
    """The mean over trainings, with Student's interval over them widened by what problems leave
    open. Every training is judged on the same problems, so the luck of their draw shows in no
    difference between trainings: each figure's own interval over problems, in the root mean square,
    is added as of an independent error. Where trainings differ by their problems that is counted
    twice, which only widens."""
    mean = Figure.mean([each.value for each in figures])
    ends = []
    for between, within in (
        (mean.value - mean.low, [each.value - each.low for each in figures]),
        (mean.high - mean.value, [each.high - each.value for each in figures]),
    ):
        ends.append(math.hypot(between, math.hypot(*within) / math.sqrt(len(within))))
    low, high = mean.value - ends[0], mean.value + ends[1]
    return Figure(mean.value, low, high, figures[0].unit, len(figures))


def begun_as(taught: Taught) -> dict[str, str]:
    """The models of a claim that are trained again; of each what it goes on from, "" of none."""
    found = {}
    for name in taught.names:
        recipe = recipe_of(name, OWN)
        start = recipe.start if recipe is not None else ""
        found[name] = f"{start}, {SAME}" if start in taught.names else start
    return found


def places(taught: Taught, seeds: Sequence[int], folder: Path) -> dict[int, Changes]:
    """By seed the knobs under which a check runs of that training, of those that `folder` has."""
    names, found = taught.names, dict[int, Changes]()
    for seed in seeds:
        if seed == OWN:
            found[seed] = {}
        elif all(kept(folder, name, seed, names) for name in names):
            found[seed] = taught.at(folder / str(seed))
    return found


def judge_over(
    study: Study,
    claim: Claim,
    again: Taught,
    count: int,
    folder: Path,
    changes: Changes,
    fast: bool,
    seed: int = 0,
    tell: Callable[[str], None] = lambda text: None,
) -> OverTrainings:
    """The claim judged of those of so many trainings of its models `again`, the shipped one first,
    that `folder` has. Of that one alone it is not judged again."""
    had = places(again, range(count), folder)
    run, judged = study.run_config(seed), []
    for training, where in had.items() if len(had) > 1 else ():
        of = f"the training from seed {training}" if training != OWN else "the shipped training"
        tell(f"judging {study.slug} / {claim.id} of {of} …")
        config = study.configured({**changes, **where})
        judged.append((training, judge(claim, config, run, fast, study.configured(where))))
    lacks = "" if len(had) == count else f"{len(had)} of {count} trainings were had"
    return OverTrainings(study.slug, claim, fast, count, tuple(judged), again, lacks, here())
