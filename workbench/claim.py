"""A claim: one sentence of a paper with the check that judges it, its finding, and its breaks.

In comes a study's config and what runs it, out comes an Outcome: whether the mechanism does what
it should, the figure, and from both the finding.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from engine.core.config import Config, renamed
from engine.core.log import Log
from widgets.knobs.config_text import changes
from workbench.finding import Figure, Finding, Reach, Reported, finding, reach, told
from workbench.machine_load import MachineLoad

Changes: TypeAlias = Mapping[str, Any]  # dotted knob path -> value, as `config.update` takes them
RunConfig: TypeAlias = Callable[[Config], Log]  # runs the study's driver to its end

BUSY = 0.1  # of the processors in others' hands, beyond which a timed claim is to be doubted
NAMED = 3  # knobs that a caution names
UNTRIED = "not yet held against a figure of the paper"
SHORT = "short of the paper's figure"  # of one that holds
Size: TypeAlias = Literal["small", "full"]  # of a setting that a claim is judged at

Grade: TypeAlias = Literal["exact", "measured", "modelled", "direction"]
GRADES: dict[str, str] = {
    "exact": "equality or a formula",
    "measured": "on this machine, as a ratio inside one run",
    "modelled": "by the virtual clock on a described device or cluster",
    "direction": "sign and mechanism only",
}


@dataclass(frozen=True)
class Outcome:
    """What a check came to: what had to hold and what was seen, as short text with units.

    `figure`: the number it was judged by, with its interval; `needed`: the number it had to reach.
    `unheeded`: knobs that somebody set and that no run of the check had.
    """

    expected: str
    measured: str
    holds: bool
    other_work: float = 0.0  # share of the processors that other programs had; of timed claims
    figure: Figure | None = None
    needed: float | None = None
    unheeded: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "holds", bool(self.holds))  # NumPy's is not JSON's

    @property
    def caution(self) -> str:
        """What to know of a claim judged in a setting of its own, not in the one that somebody set,
        and of a timed one judged on a busy machine; "" otherwise."""
        said = []
        if self.unheeded:
            more = f" and {len(self.unheeded) - NAMED} more" if len(self.unheeded) > NAMED else ""
            knobs = ", ".join(self.unheeded[:NAMED]) + more
            said.append(f"judged in the claim's own setting: no run had {knobs} as set")
        if self.other_work > BUSY:
            said.append(
                f"other programs took {self.other_work:.0%} of the processors meanwhile: "
                "check again on a quiet machine"
            )
        return "; ".join(said)


Check: TypeAlias = Callable[[Any, RunConfig, bool], Outcome]


@dataclass(frozen=True)
class Break:
    """Knob changes under which a claim's check must say no.

    `mechanism`: they spoil the mechanism and leave all else alone (a dropped message, a stale
    fragment); otherwise they put the baseline in its place. `why` says what is spoilt. `small`: off
    where the small setting has too few repetitions to tell.
    """

    changes: Changes
    mechanism: bool = False
    why: str = ""
    small: bool = True


@dataclass(frozen=True)
class Comparison:
    """What a claim is held against at full size: rivals and workloads, each as its check names it
    in what it measured. `why`: the reason where of either there are fewer than two."""

    rivals: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Taught:
    """The models taught here that a figure rests on. `knobs`: the study's knobs that hold them;
    `rivals`: those that the check opens itself, as they lie beside them (`find.beside`)."""

    knobs: Mapping[str, str]
    rivals: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Each model once."""
        return tuple(dict.fromkeys([*self.knobs.values(), *self.rivals]))

    def at(self, folder: Path) -> Changes:
        """Knob changes under which its models are those in a folder."""
        return {knob: str(folder / name) for knob, name in self.knobs.items()}

    def only(self, names: Collection[str]) -> "Taught":
        """Those of its models that are named, or all where none is."""
        if not names:
            return self
        knobs = {knob: name for knob, name in self.knobs.items() if name in names}
        return Taught(knobs, tuple(name for name in self.rivals if name in names))


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper that can come out false here.

    `check(config, run_config, fast)` says whether it holds for that config; `run_config` gives the
    log of a finished run; `fast` asks for the small setting. `paper`: the paper's own figure and
    its place in words; `reported`: the same as a number. `timed`: it compares wall-clock speeds, so
    it can fail on a busy machine that the engine is not to blame for; tests assert it with --full
    only.

    `broken`: what makes the same check say no; plain knob changes are the baseline's. `finding`:
    what the claim is known to come to on the machine it was written on, with `why`; `quick` where
    the small setting comes out otherwise. A finding that is "not tried" says why not.

    `fails`: the settings at which the check is known to say no, for the reason that `why` gives. A
    sentence that does not come out stands like that; a weaker one that holds is none for it. A yes
    is the figure's own (`bears`); how far it goes is the finding's to say, beside the yes.

    `held`: the rivals and workloads that its check asks, by name. `taught`: the models taught here
    that its figure rests on. The check sees one training of each, so its interval is over problems;
    `workbench check --trainings` judges it over several.
    """

    id: str
    sentence: str
    paper: str
    grade: Grade
    check: Check
    broken: Changes | tuple[Break, ...]
    timed: bool = False
    reported: Reported | None = None
    finding: Finding = "not tried"
    why: str = ""
    quick: Finding | None = None
    fails: tuple[Size, ...] = ()
    held: Comparison | None = None
    taught: Taught | None = None

    @property
    def breaks(self) -> tuple[Break, ...]:
        """Every break, plain knob changes as one of the baseline."""
        return self.broken if isinstance(self.broken, tuple) else (Break(self.broken),)

    def breaks_at(self, fast: bool) -> list[Break]:
        """The breaks that a size of setting can tell, those of the mechanism first."""
        told = [each for each in self.breaks if each.small or not fast]
        return sorted(told, key=lambda each: not each.mechanism)

    def asked(self, config: Config, run: RunConfig, fast: bool) -> Outcome:
        """What the check says, its yes taken back where its own figure does not bear it."""
        return self.borne(self.check(config, run, fast))

    def borne(self, outcome: Outcome) -> Outcome:
        """An outcome with no yes that says more than its figure, whatever the check's rule was."""
        return outcome if self.bears(outcome) else replace(outcome, holds=False)

    def bears(self, outcome: Outcome) -> bool:
        """Whether an outcome says no more than its figure: behind a yes all of the interval reaches
        what was needed and shows an effect, the paper's way. By how much may be undecided. Where
        two things are to be equal the margin lies on both sides: all of it has to be within."""
        figure, paper = outcome.figure, self.reported
        if not outcome.holds or figure is None or paper is None:
            return True
        found = self.came_to(outcome)
        if paper.better == "equal":
            return found == "reproduced"
        drawn = figure.low < figure.high
        idle = drawn and paper.none is not None and figure.low <= paper.none <= figure.high
        if idle or found == "contrary":
            return False
        if outcome.needed is None:
            return True
        near = 1e-9 * abs(outcome.needed)
        if paper.better == "more":
            return figure.low >= outcome.needed - near
        return figure.high <= outcome.needed + near

    def lacks_besides(self, outcome: Outcome) -> bool:
        """Whether the check says no though the figure would do for a yes: it asks for more, which
        is in no figure."""
        return not outcome.holds and self.bears(replace(outcome, holds=True))

    def came_to(self, outcome: Outcome) -> Finding:
        """What an outcome of this claim says of the paper's figure."""
        return finding(outcome.figure, self.reported)

    @property
    def direction(self) -> bool:
        """Whether it says a direction alone, by its grade or its paper's figure."""
        return self.grade == "direction" or (self.reported is not None and self.reported.direction)

    def reached(self, outcome: Outcome) -> Reach | None:
        """How an outcome of this claim reaches the paper's figure; None where it does not."""
        found = reach(outcome.figure, self.reported)
        return "direction" if found and self.direction else found

    def told(self, outcome: Outcome) -> str:
        """The finding of an outcome in words."""
        return told(self.came_to(outcome), self.reached(outcome))

    def stated(self, fast: bool) -> Finding:
        """The finding known of this size of setting."""
        return self.quick if fast and self.quick is not None else self.finding

    def comes_out(self, fast: bool) -> bool:
        """Whether its check is stated to say yes at this size of setting."""
        return ("small" if fast else "full") not in self.fails

    def notices(
        self, each: Break, broken: Outcome, whole: Callable[[], Outcome], fast: bool
    ) -> bool:
        """Whether a break changes what it comes to: yes becomes no. Where it does not come out
        anyhow, the broken figure lies outside the interval of `whole`, the unbroken outcome; the
        baseline's is another figure."""
        if self.comes_out(fast):
            return not broken.holds
        own, other = whole().figure, broken.figure
        if own is None or other is None or not each.mechanism:
            return own != other
        return not own.low <= other.value <= own.high


def judge(
    claim: Claim, config: Config, run: RunConfig, fast: bool, own: Config | None = None
) -> Outcome:
    """The outcome of a claim; a timed one's says how busy others kept the machine. `own`: the
    study's config; the outcome says what was set beside it and no run of the check had."""
    turned = {} if own is None else changes(config, own)
    missed: list[set[str]] = []

    def seen(each: Config) -> Log:
        missed.append({path for path in turned if not _stands(config, each, path)})
        return run(each)

    with MachineLoad() as other:
        outcome = claim.asked(config, seen if turned else run, fast)
    lost = set.intersection(*missed) if missed else set()
    outcome = replace(outcome, unheeded=tuple(path for path in turned if path in lost))
    return replace(outcome, other_work=other.share) if claim.timed else outcome


def _stands(config: Config, other: Config, path: str) -> bool:
    """Whether a knob of `config` is in `other` as it is there; of a policy, its kind."""
    mine, theirs = renamed(config, path)[1], renamed(other, path)[1]
    return type(mine) is type(theirs) if isinstance(mine, Config) else bool(mine == theirs)


def breaks_that_pass(
    claim: Claim, configured: Callable[[Changes], Config], run: RunConfig, fast: bool
) -> list[Break]:
    """Breaks that the claim does not notice: each is a hole in it."""
    whole = cache(lambda: claim.asked(configured({}), run, fast))
    return [
        each for each in claim.breaks_at(fast)
        if not claim.notices(each, claim.asked(configured(each.changes), run, fast), whole, fast)
    ]  # fmt: skip
