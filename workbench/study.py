"""Study: one paper's system as a value (driver, presets, views, claims, tries) and its check.

A study lies in `workbench/studies/<family>/<slug with _ for ->.py` as the module's `STUDY`, found
by file name. A claim's check runs the driver as often as it needs and gives one Outcome.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from engine.core.config import Config, update
from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.names import suggest
from engine.core.run import Driver, Run
from workbench.other_work import OtherWork

Changes: TypeAlias = Mapping[str, Any]  # dotted knob path -> value, as `config.update` takes them
RunConfig: TypeAlias = Callable[[Config], Log]  # runs the study's driver to its end

BUSY = 0.1  # of the processors in others' hands, beyond which a timed claim is to be doubted

Grade: TypeAlias = Literal["exact", "measured", "modelled", "direction"]
GRADES: dict[str, str] = {
    "exact": "equality or a formula",
    "measured": "on this machine, as a ratio inside one run",
    "modelled": "by the virtual clock on a described device or cluster",
    "direction": "sign and mechanism only",
}


@dataclass(frozen=True)
class Outcome:
    """What a check found: what had to hold and what was found, as short text with units."""

    expected: str
    measured: str
    holds: bool
    other_work: float = 0.0  # share of the processors that other programs had; of timed claims

    @property
    def caution(self) -> str:
        """What to know of a timed claim judged on a busy machine; "" otherwise."""
        if self.other_work <= BUSY:
            return ""
        return (
            f"other programs took {self.other_work:.0%} of the processors meanwhile: "
            "check again on a quiet machine"
        )


Check: TypeAlias = Callable[[Any, RunConfig, bool], Outcome]


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper that can come out false here.

    `check(config, run_config, fast)` says whether it holds for that config; `run_config` gives the
    log of a finished run; `fast` asks for the small setting. Under `broken`, knob changes that
    break the mechanism, the same check must say no. `paper`: the paper's own figure and its place.
    `timed`: it compares wall-clock speeds, so it can fail on a busy machine that the engine is not
    to blame for; tests assert it with --full only.
    """

    id: str
    sentence: str
    paper: str
    grade: Grade
    check: Check
    broken: Changes
    timed: bool = False


@dataclass(frozen=True)
class Study:
    """A paper's system, ready to be run, seen and checked.

    `presets`: name -> knob changes. `tries`: (label, knob changes), three buttons that set the
    knobs to an interesting place. `about`: one paragraph of what happens. `limits`: where the model
    stops being true. `views`: at most four names of views, the telling one first.
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

    def row(self) -> dict[str, Any]:
        return {
            "slug": self.slug,
            "claim": self.claim.id,
            "sentence": self.claim.sentence,
            "grade": self.claim.grade,
            "paper": self.claim.paper,
            "expected": self.outcome.expected,
            "measured": self.outcome.measured,
            "holds": self.outcome.holds,
            "caution": self.outcome.caution,
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
    run = study.run_config(seed)
    for claim in (claim for claim in study.claims if grade in (None, claim.grade)):
        yield Verdict(study.slug, claim, judge(claim, config, run, fast))


def judge(claim: Claim, config: Config, run: RunConfig, fast: bool) -> Outcome:
    """The outcome of a claim; a timed one's says how busy others kept the machine."""
    with OtherWork() as other:
        outcome = claim.check(config, run, fast)
    return replace(outcome, other_work=other.share) if claim.timed else outcome
