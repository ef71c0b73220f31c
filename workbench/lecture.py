"""A study as a lecture: captions one by one, a question before each change, the answer after it.

The captions are the study's own words; a question asks what a try will do to a figure of the run,
or whether a claim holds, and the answer is what the run came to, or what is recorded of the claim.
"""

import re
from dataclasses import dataclass

from engine.core.log import Log
from widgets.stage.figures import measures
from widgets.theme import figure
from workbench.claim import Claim
from workbench.finding import FINDINGS
from workbench.study import Changes, Study

SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
STORY = 6  # sentences told one by one
CLAIMS = 4
ALIKE = 0.05  # of the figure before: what changes by less is about the same
TRY = ("more", "about the same", "less")
CLAIM = ("it holds", "weaker than the paper says", "it does not")
# The first of these that a run has is asked about.
ASKED = ("tokens per second", "time to first token, p50", "duration")


@dataclass(frozen=True)
class Step:
    """One caption. `changes`: knobs that are set with it, None where nothing is turned; `claim`:
    the one that is asked about."""

    caption: str
    changes: Changes | None = None
    claim: Claim | None = None

    @property
    def choices(self) -> tuple[str, ...]:
        """What may be predicted; none for a story."""
        if self.claim is not None:
            return CLAIM
        return TRY if self.changes is not None else ()


def steps(study: Study) -> tuple[Step, ...]:
    """The lecture of a study: its story, its tries, its claims."""
    story = [Step(sentence) for sentence in SENTENCE.split(study.about)[:STORY]]
    tries = [Step(label, changes) for label, changes in study.tries]
    return (*story, *tries, *(Step(claim.sentence, claim=claim) for claim in study.claims[:CLAIMS]))


def asked(log: Log) -> str:
    """The figure of a run that is asked about."""
    found = measures(log)
    return next((name for name in ASKED if name in found), "duration")


def question(step: Step, before: Log | None) -> str:
    """What is to be predicted; "" where nothing is, or nothing can be compared with yet."""
    if step.claim is not None:
        return "Does it hold?"
    if step.changes is None or before is None:
        return ""
    return f"What becomes of its {asked(before)}?"


def revealed(before: Log, after: Log) -> tuple[str, str]:
    """(the right prediction, a sentence with both figures) of a try. A figure that one of the two
    runs lacks is no prediction's: ""."""
    name = asked(before)
    one, other = (measures(log).get(name) for log in (before, after))
    if one is None or other is None:
        return "", f"{name}: the two runs do not both have it"
    change = other[0] / one[0] - 1 if one[0] else 0.0
    right = TRY[1] if abs(change) < ALIKE else TRY[0] if change > 0 else TRY[2]
    times = f" ({other[0] / one[0]:.2g} times)" if one[0] else ""
    return right, f"{name}: {figure(*one)} before, {figure(*other)} now: {right}{times}."


def known(claim: Claim) -> tuple[str, str]:
    """(the right prediction, a sentence) of a claim: the paper's words and the recorded finding.

    A claim that was not tried, or is undecided, has no right prediction: "".
    """
    found = claim.stated(fast=False)
    right = {"reproduced": CLAIM[0], "weaker": CLAIM[1], "contrary": CLAIM[2]}.get(found, "")
    why = claim.why or FINDINGS[found]
    return right, f"The paper: {claim.paper}. Here: {found}, {why}."


def answered(right: str, said: str) -> str:
    """What is said of a prediction."""
    if not right or not said:
        return ""
    return "As you said." if right == said else f"You said: {said}."
