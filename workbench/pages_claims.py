"""The claims beside a study's views: sentence, grade, the paper's figure, ours, and a rerun."""

from collections.abc import Callable
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.config import Config
from workbench.pages_shell import html
from workbench.study import GRADES, Study
from workbench.verdicts import Standing, Verdicts

CSS = """
.claim { border-top: 1px solid var(--wb-line); padding: 12px 0 4px; display: grid; gap: 8px; }
.claim .top { display: flex; justify-content: space-between; align-items: center; gap: 8px; }
.verdict { font-size: 12.5px; font-weight: 600; display: inline-flex; gap: 6px; }
.verdict.yes { color: var(--wb-accent); } .verdict.no { color: var(--wb-wrong); }
.verdict.open { color: var(--wb-faint); font-weight: 500; }
.grade { font-size: 12px; color: var(--wb-faint); border: 1px solid var(--wb-line);
  border-radius: 999px; padding: 1px 9px; cursor: help; }
.grade.modelled { border-style: dashed; }
.claim p { font-size: 14px; line-height: 1.45; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 12px; margin: 0;
  font-size: 12.5px; }
dt { color: var(--wb-faint); } dd { margin: 0; font-variant-numeric: tabular-nums; }
"""


def claim_card(standing: Standing, stale: bool) -> str:
    """One claim as HTML; `stale`: judged for other knobs than those set now."""
    claim, outcome = standing.claim, standing.outcome
    kind, word = _word(standing)
    rows = [("Paper", claim.paper)]
    if outcome is not None:
        rows += [("Expected", outcome.expected), ("Here", outcome.measured)]
    if standing.fault:
        rows.append(("Trouble", standing.fault))
    if outcome is not None and outcome.caution:
        rows.append(("Caution", outcome.caution))
    if stale and outcome is not None:
        rows.append(("Note", "judged for other knobs than these; check again"))
    facts = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return (
        '<div class="claim"><div class="top">'
        f'<span class="verdict {kind}">{word}</span>'
        f'<span class="grade {claim.grade}" title="{escape(GRADES[claim.grade])}">{claim.grade}'
        f"</span></div><p>{escape(claim.sentence)}</p><dl>{facts}</dl></div>"
    )


def _word(standing: Standing) -> tuple[str, str]:
    if standing.state == "failed":
        return "no", "✕ could not be checked"
    if standing.state in ("waiting", "checking"):
        return "open", "… checking" if standing.state == "checking" else "… waiting"
    if standing.outcome is None:
        return "open", "not checked yet"
    return ("yes", "✓ holds here") if standing.outcome.holds else ("no", "✕ does not hold here")


class Claims:
    """The column of claims. `refresh` redraws what changed; call it on the page's timer."""

    def __init__(self, study: Study, verdicts: Verdicts, config: Callable[[], Config]) -> None:
        self.study, self.verdicts, self.config = study, verdicts, config
        self._seen: tuple[int, int] | None = None
        self._cards = {claim.id: html("", CSS) for claim in study.claims}
        check = pmui.Button(label="Check all", size="small", variant="outlined")
        check.on_click(lambda _: verdicts.ask(config()))
        full = pmui.Button(label="Full size", size="small", variant="text")
        full.on_click(lambda _: verdicts.ask(config(), fast=False))
        head = html("<h2>Does it hold?</h2>", CSS, align="center")
        self.panel = pn.Column(
            pn.Row(head, check, full, sizing_mode="stretch_width"),
            *[self._with_button(claim.id) for claim in study.claims],
            html(
                '<div class="claim"><h2>Where the model stops being true</h2>'
                f'<p class="faint small">{escape(study.limits)}</p></div>',
                CSS,
                margin=(12, 0, 0, 0),
            ),
            sizing_mode="stretch_width",
            margin=(16, 20),
        )
        self.refresh()

    def _with_button(self, id: str) -> Any:
        again = pmui.Button(label="Check", size="small", variant="text", margin=(0, 0, 6, -4))
        again.on_click(lambda _: self.verdicts.ask(self.config(), id))
        return pn.Column(self._cards[id], again, sizing_mode="stretch_width", margin=0)

    def refresh(self) -> None:
        config = self.config()
        seen = (self.verdicts.version, id(config))
        if seen == self._seen:
            return
        self._seen = seen
        for name, standing in self.verdicts.standings.items():
            stale = standing.config is not None and standing.config != config
            text = claim_card(standing, stale)
            if self._cards[name].object != text:
                self._cards[name].object = text
