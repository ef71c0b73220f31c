"""The claims beside a study's views: sentence, grade, the paper's figure, ours, the finding."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import param

from engine.core.config import Config
from widgets.knobs.config_text import changes, spelled
from widgets.page.bundle import bundle
from widgets.page.component import Component
from workbench import kept_maps
from workbench.claim import GRADES, SHORT, UNTRIED, Claim, Outcome
from workbench.claim_text import held_line, machines_line, over_line, several_line
from workbench.finding import FINDINGS, IN_DIRECTION
from workbench.findings_table import elsewhere
from workbench.pages.verdicts.verdict_bar import verdict_bar
from workbench.pages.verdicts.verdicts import Standing, Verdicts
from workbench.regime_figure import said
from workbench.study import Study, here
from workbench.trainings import record

TOLD = 3  # knobs of a person's own setting that a card names


def claim_card(
    standing: Standing,
    stale: bool,
    own: Sequence[str] = (),
    over: Mapping[str, Any] | None = None,
    machines: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """What one claim's card says; `stale`: judged for other knobs than those set now; `own`: the
    knobs in which what it was judged for is not the study's own setting; `over`: what is recorded
    of several trainings, `machines`: of a timed claim on each machine."""
    claim, outcome = standing.claim, standing.outcome
    kind, word = _word(standing, bool(own))
    rows = [("Paper", claim.paper)]
    if claim.held is not None:
        rows.append(("Beside", held_line(claim.held)))
    if claim.taught is not None:
        rows.append(("Interval", over_line(claim, over)))
    if outcome is not None:
        rows += [("Expected", outcome.expected), ("Here", outcome.measured)]
    if several := several_line(claim, over):
        rows.append(("Trainings", several))
    own_machine = [row for row in machines if row["machine"] == here()]
    rows.append(("Finding", _found(claim, outcome, machines_line(claim, own_machine))))
    if there := machines_line(claim, [row for row in machines if row not in own_machine]):
        rows.append(("Elsewhere", there))
    if standing.fault:
        rows.append(("Trouble", standing.fault))
    if outcome is not None and outcome.caution:
        rows.append(("Caution", outcome.caution))
    is_mine = bool(own) and outcome is not None and not outcome.holds
    if is_mine:
        more = f" and {len(own) - TOLD} more" if len(own) > TOLD else ""
        rows.append(("Under", f"{', '.join(own[:TOLD])}{more}"))
    is_pending = outcome is not None and standing.state in ("waiting", "checking")
    if is_pending:
        rows.append(("Note", "figures of the check before, until this one is through"))
    elif stale and outcome is not None:
        rows.append(("Note", "judged for other knobs than these; check again"))
    return {
        "id": claim.id,
        "kind": kind,
        "word": word,
        "grade": claim.grade,
        "about": GRADES[claim.grade],
        "sentence": claim.sentence,
        "facts": [list(row) for row in rows],
        "own": is_mine and not is_pending,
        "pending": is_pending,
        "bar": verdict_bar(outcome.figure, outcome.needed, claim.reported) if outcome else {},
    }


def where(study: Study) -> dict[str, str]:
    """Where the claim of the study's first map that is recorded holds, for the top of the column:
    where an idea stops paying is what a person should see first. {} of a study without maps."""
    maps = kept_maps.shipped(study.slug)
    for regime in study.regimes:
        drawn = maps.get(regime.name)
        if drawn is not None:
            claim = study.claim(regime.claim)
            says = said(regime, claim, drawn, brief=True)
            return {"claim": claim.sentence, "says": says, "over": regime.x}
    return {}


def _found(claim: Claim, outcome: Outcome | None, recorded: str = "") -> str:
    """The finding and its reason; before it is judged here, the one that is known: of a timed claim
    what is `recorded` of this machine."""
    seen = claim.came_to(outcome) if outcome is not None else claim.stated(fast=False)
    why = claim.why or (UNTRIED if seen == "not tried" else FINDINGS[seen])
    if outcome is not None:
        return f"{claim.told(outcome)}: {why}"
    if recorded:
        return f"recorded as {recorded}: {why}"
    alone = seen == "reproduced" and claim.direction
    return f"known as {IN_DIRECTION if alone else seen}: {why}"


def _word(standing: Standing, own: bool) -> tuple[str, str]:
    """How a card is marked and headed. `own`: judged under knobs that are not the study's."""
    if standing.state == "failed":
        return "no", "✕ could not be checked"
    if standing.state in ("waiting", "checking"):
        return "open", "… checking" if standing.state == "checking" else "… waiting"
    if standing.outcome is None:
        return "open", "not checked yet"
    if standing.outcome.holds:
        weaker = standing.claim.came_to(standing.outcome) == "weaker"
        return ("open", f"✓ holds, {SHORT}") if weaker else ("yes", "✓ holds here")
    if not standing.claim.comes_out(standing.fast):
        return "no", "✕ does not hold here, as it states"
    if own:  # at the study's own setting it is known to
        return "open", "✕ not under your knobs"
    return "open" if standing.outcome.caution else "no", "✕ does not hold here"


class ClaimList(Component):
    """The column in the browser. Knows nothing; `asked` says what a person wants judged."""

    _esm = bundle(Path(__file__).with_suffix(".js"))

    cards = param.List(default=[])
    limits = param.String(default="")
    where = param.Dict(default={}, doc="what the first map says: claim, says, over")
    left = param.Integer(default=0, doc="claims that wait or are being judged")
    pace = param.String(default="", doc="how long that will take, or takes")
    asked = param.Dict(default={})


class Claims:
    """The column of claims, the one called `first` on top. `refresh` sends what changed; call it on
    the page's timer. Raises BadInput where there is no such claim."""

    def __init__(
        self, study: Study, verdicts: Verdicts, config: Callable[[], Config], first: str = ""
    ) -> None:
        self.study, self.verdicts, self.config = study, verdicts, config
        self._first = study.claim(first).id if first else ""
        self._seen: tuple[int, int] | None = None
        self.panel = ClaimList(
            limits=study.limits, where=where(study), sizing_mode="stretch_width", margin=(16, 20)
        )
        self.panel.param.watch(lambda event: self.ask(event.new), "asked")
        self.refresh()

    def ask(self, asked: dict[str, Any]) -> None:
        """Judge what a person asked for, or stop; anything else is ignored."""
        id = asked.get("id")
        if asked.get("stop") is True:
            self.verdicts.stop()
        elif id == "" or id in self.verdicts.standings:
            config = self.study.config if asked.get("own") is True else self.config()
            self.verdicts.ask(config, id, fast=asked.get("fast") is not False)

    def refresh(self) -> None:
        config = self.config()
        if (pace := self.verdicts.pace() if self.verdicts.left else "") != self.panel.pace:
            self.panel.pace = pace
        seen = (self.verdicts.version, id(config))
        if seen == self._seen:
            return
        self._seen = seen
        cards = [self._card(standing, config) for standing in self.verdicts.standings.values()]
        cards.sort(key=lambda card: card["id"] != self._first)
        if cards != self.panel.cards:
            self.panel.cards = cards
        if self.panel.left != self.verdicts.left:
            self.panel.left = self.verdicts.left

    def _card(self, standing: Standing, config: Config) -> dict[str, Any]:
        of = standing.judged_for or standing.config
        name = self.study.slug, standing.claim.id
        over, machines = record.of(*name), elsewhere(*name)
        if of is None:
            return claim_card(standing, False, over=over, machines=machines)
        differing = changes(of, self.study.config)
        own = [f"{path} = {spelled(value)}" for path, value in differing.items()]
        return claim_card(standing, of != config, own, over, machines)
