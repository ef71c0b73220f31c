"""The claims beside a study's views: sentence, grade, the paper's figure, ours, the finding."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import param

from engine.core.config import Config
from widgets.page.bundle import bundle
from widgets.page.component import Component
from workbench.claim import GRADES, SHORT, UNTRIED, Claim, Outcome
from workbench.finding import FINDINGS, IN_DIRECTION
from workbench.pages.verdicts.verdict_bar import verdict_bar
from workbench.pages.verdicts.verdicts import Standing, Verdicts
from workbench.study import Study


def claim_card(standing: Standing, stale: bool) -> dict[str, Any]:
    """What one claim's card says; `stale`: judged for other knobs than those set now."""
    claim, outcome = standing.claim, standing.outcome
    kind, word = _word(standing)
    rows = [("Paper", claim.paper)]
    if outcome is not None:
        rows += [("Expected", outcome.expected), ("Here", outcome.measured)]
    rows.append(("Finding", _found(claim, outcome)))
    if standing.fault:
        rows.append(("Trouble", standing.fault))
    if outcome is not None and outcome.caution:
        rows.append(("Caution", outcome.caution))
    if stale and outcome is not None:
        rows.append(("Note", "judged for other knobs than these; check again"))
    return {
        "id": claim.id,
        "kind": kind,
        "word": word,
        "grade": claim.grade,
        "about": GRADES[claim.grade],
        "sentence": claim.sentence,
        "facts": [list(row) for row in rows],
        "bar": verdict_bar(outcome.figure, outcome.needed, claim.reported) if outcome else {},
    }


def _found(claim: Claim, outcome: Outcome | None) -> str:
    """The finding and its reason; before it is judged here, the one that is known."""
    seen = claim.came_to(outcome) if outcome is not None else claim.stated(fast=False)
    why = claim.why or (UNTRIED if seen == "not tried" else FINDINGS[seen])
    if outcome is not None:
        return f"{claim.told(outcome)}: {why}"
    alone = seen == "reproduced" and claim.direction
    return f"known as {IN_DIRECTION if alone else seen}: {why}"


def _word(standing: Standing) -> tuple[str, str]:
    if standing.state == "failed":
        return "no", "✕ could not be checked"
    if standing.state in ("waiting", "checking"):
        return "open", "… checking" if standing.state == "checking" else "… waiting"
    if standing.outcome is None:
        return "open", "not checked yet"
    if standing.outcome.holds:
        weaker = standing.claim.came_to(standing.outcome) == "weaker"
        return ("open", f"✓ holds, {SHORT}") if weaker else ("yes", "✓ holds here")
    stated = "" if standing.claim.comes_out(standing.fast) else ", as it states"
    return "no", f"✕ does not hold here{stated}"


class ClaimList(Component):
    """The column in the browser. Knows nothing; `asked` says what a person wants judged."""

    _esm = bundle(Path(__file__).with_suffix(".js"))

    cards = param.List(default=[])
    limits = param.String(default="")
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
        self.panel = ClaimList(limits=study.limits, sizing_mode="stretch_width", margin=(16, 20))
        self.panel.param.watch(lambda event: self.ask(event.new), "asked")
        self.refresh()

    def ask(self, asked: dict[str, Any]) -> None:
        """Judge what a person asked for; anything else is ignored."""
        id = asked.get("id")
        if id == "" or id in self.verdicts.standings:
            self.verdicts.ask(self.config(), id, fast=asked.get("fast") is not False)

    def refresh(self) -> None:
        config = self.config()
        seen = (self.verdicts.version, id(config))
        if seen == self._seen:
            return
        self._seen = seen
        cards = [
            claim_card(standing, standing.config is not None and standing.config != config)
            for standing in self.verdicts.standings.values()
        ]
        cards.sort(key=lambda card: card["id"] != self._first)
        if cards != self.panel.cards:
            self.panel.cards = cards
