"""The claim's door: words or an arXiv id become systems, their claims and what came of each."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import panel_material_ui as pmui

from engine.core.names import counted
from workbench.catalogue import Entry, search, study
from workbench.findings_table import findings_line, findings_of
from workbench.pages.doors.door import CSS, WIDE, door, hint
from workbench.pages.frame.shell import address, html
from workbench.search.found_elsewhere import nothing
from workbench.trainings import record
from workbench.vocabulary import words_of

ROWS = 5  # systems shown
CLAIMS = 3  # claims of the first system shown
HINT = "What a paper says, and what came out here: zero bubble, KV cache, one-bit Adam, 2501.18512."


class ClaimDoor:
    """A field of words; systems and claims beneath."""

    def __init__(self) -> None:
        self.words = pmui.TextInput(
            label="Words, a system or an arXiv id", placeholder="zero bubble", **WIDE
        )
        self.found = html("", CSS)
        self.dark = False
        self.words.param.watch(lambda _: self.paint(self.dark), "value_input")

    def paint(self, dark: bool) -> None:
        self.dark = dark
        text = (self.words.value_input or "").strip()
        self.found.object = claims_list(text, dark) if text else hint(HINT)

    @property
    def card(self) -> Any:
        return door("I have a claim", self.words, self.found)


def claims_list(text: str, dark: bool) -> str:
    """Systems whose paper says what `text` asks, the first one's claims and their findings."""
    rows, found = record.headlines(), search(text)
    if not found:
        return nothing(text, dark)
    called = "".join(
        f"<li><span>“{escape(said)}” is called here: {escape(word.here)}</span></li>"
        for said, word in words_of(text)
    )
    found.sort(key=lambda each: not each.built)
    lines = [_system(each, rows, dark) for each in found[:ROWS]]
    if found[0].built:
        lines.insert(1, _claims(found[0], text, rows, dark))
    more = f"<li><span>and {len(found) - ROWS} more</span></li>" if len(found) > ROWS else ""
    return f"<ul>{called}{''.join(lines)}{more}</ul>"


def _system(each: Entry, rows: Sequence[Mapping[str, Any]], dark: bool) -> str:
    if not each.built:
        return f"<li>{escape(each.title)} <span>not built yet</span></li>"
    said = findings_line(findings_of(each.slug, rows)) or each.claim[:90]
    link = address("study", dark, slug=each.slug)
    return f'<li><a href="{escape(link)}">{escape(each.title)}</a> <span>{escape(said)}</span></li>'


def _claims(each: Entry, text: str, rows: Sequence[Mapping[str, Any]], dark: bool) -> str:
    """The claims of a system, those first that have the most of the words, each with its finding
    and the way to where it is checked."""
    findings = {row["claim"]: row["finding"] for row in rows if row["slug"] == each.slug}
    words = [word[:5] for word in text.lower().replace("-", " ").split()]

    def order(claim: Any) -> int:
        said = f"{claim.sentence} {claim.paper}".lower()
        return -sum(word in said for word in words)

    claims = sorted(study(each.slug).claims, key=order)
    lines = [
        f'<li><a href="{escape(address("study", dark, slug=each.slug, claim=claim.id))}">'
        f"{escape(claim.sentence)}</a> <span>{escape(findings.get(claim.id, 'not tried'))}</span>"
        "</li>"
        for claim in claims[:CLAIMS]
    ]
    rest = len(claims) - CLAIMS
    if rest > 0:
        lines.append(f"<li><span>and {counted(rest, 'claim')} more on its page</span></li>")
    return f"<li><ul style='padding-left:12px'>{''.join(lines)}</ul></li>"
