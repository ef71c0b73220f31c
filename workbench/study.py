"""Study: one paper's system as a value (driver, presets, views, claims, tries) and its check.

A study lies in `workbench/studies/<family>/<slug with _ for ->.py` as the module's `STUDY`, found
by file name. A claim's check runs the driver as often as it needs and gives one Outcome.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.core.config import Config, update
from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.machine import describe
from engine.core.names import suggest
from engine.core.run import Driver, Run
from workbench.claim import (
    GRADES,
    UNTRIED,
    Break,
    Changes,
    Check,
    Claim,
    Comparison,
    Grade,
    Outcome,
    RunConfig,
    Taught,
    judge,
)
from workbench.finding import Figure, Finding, Reported
from workbench.regime import Regime
from workbench.sweep import Sweep

__all__ = [
    "GRADES", "Break", "Changes", "Check", "Claim", "Comparison", "Figure", "Finding", "Grade",
    "Outcome", "Regime", "Reported", "RunConfig", "Study", "Sweep", "Taught", "Verdict", "check",
    "judge",
]  # fmt: skip


@dataclass(frozen=True)
class Study:
    """A paper's system, ready to be run, seen and checked.

    `presets`: name -> knob changes. `tries`: (label, knob changes), three buttons that set the
    knobs to an interesting place. `about`: one paragraph of what happens. `limits`: where the model
    stops being true. `views`: at most four names of views, the telling one first. `sweeps`: curves
    over a knob, drawn when asked for. `regimes`: maps of where a claim holds.
    """

    slug: str
    driver: Driver
    config: Config
    views: tuple[str, ...]
    claims: tuple[Claim, ...]
    about: str
    tries: tuple[tuple[str, Changes], ...]
    limits: str
    presets: Mapping[str, Changes] = field(default_factory=dict)
    title: str = ""  # where the catalogue's name of the system is not enough
    sweeps: tuple[Sweep, ...] = ()
    regimes: tuple[Regime, ...] = ()

    def configured(self, changes: Changes, preset: str = "") -> Config:
        """The study's config with a preset, then knob changes, applied. Raises BadInput."""
        if preset and preset not in self.presets:
            raise BadInput(
                f"preset {preset!r} of {self.slug}: no such preset; {suggest(preset, self.presets)}"
            )
        return update(update(self.config, self.presets.get(preset, {})), changes)

    def run_config(self, seed: int = 0) -> RunConfig:
        """A function that runs this study's driver here and now and returns the log."""

        def run(config: Config) -> Log:
            return Run.execute(self.driver, config, seed=seed, study=self.slug).log

        return run

    def claim(self, id: str) -> Claim:
        """The claim of that id. Raises BadInput listing the ids there are."""
        for claim in self.claims:
            if claim.id == id:
                return claim
        names = [claim.id for claim in self.claims]
        raise BadInput(f"claim {id!r} of {self.slug}: no such claim; {suggest(id, names)}")


@dataclass(frozen=True)
class Verdict:
    """A claim with its outcome; `row` is what `workbench check --json` prints of it."""

    slug: str
    claim: Claim
    outcome: Outcome
    machine: str = ""  # its processor, where it was judged

    @property
    def finding(self) -> Finding:
        """What the outcome says of the paper's figure."""
        return self.claim.came_to(self.outcome)

    @property
    def why(self) -> str:
        """The reason that is known for the finding."""
        return self.claim.why or (UNTRIED if self.finding == "not tried" else "")

    def row(self) -> dict[str, Any]:
        claim, outcome = self.claim, self.outcome
        return {
            "slug": self.slug,
            "claim": claim.id,
            "sentence": claim.sentence,
            "grade": claim.grade,
            "timed": claim.timed,
            "taught": list(claim.taught.names) if claim.taught else [],
            "paper": claim.paper,
            "reported": claim.reported.row() if claim.reported else None,
            "expected": outcome.expected,
            "measured": outcome.measured,
            "figure": outcome.figure.row() if outcome.figure else None,
            "needed": outcome.needed,
            "holds": outcome.holds,
            "fails": list(claim.fails),
            "finding": self.finding,
            "reach": claim.reached(outcome),
            "why": self.why,
            "caution": outcome.caution,
            "machine": self.machine,
        }


def check(
    study: Study,
    changes: Changes | None = None,
    *,
    fast: bool = True,
    seed: int = 0,
    grade: Grade | None = None,
) -> Iterator[Verdict]:
    """Each claim of `study` (of that `grade`, if one is named) judged in turn, under `changes` to
    its config. Raises BadInput for no such grade."""
    if grade is not None and grade not in GRADES:
        raise BadInput(f"grade {grade!r}: one of {', '.join(GRADES)}")
    config = study.configured(changes or {})
    run, machine = study.run_config(seed), here()
    for claim in (claim for claim in study.claims if grade in (None, claim.grade)):
        yield Verdict(study.slug, claim, judge(claim, config, run, fast, study.config), machine)


def here() -> str:
    """This machine as a claim names it: its processor and how many cores of it."""
    facts = describe()
    return f"{facts['processor']}, {facts['cores']} cores"
