"""What is found elsewhere than on cards: the knobs, views and help texts that say words, each with
the way there; and, where no system has the words, the nearest family and the doors."""

import re
from html import escape
from typing import Any

import panel as pn

from engine.core.names import counted
from workbench.catalogue import entry, families
from workbench.pages.frame.shell import address, html
from workbench.search.word_index import Place, found, nearest_family, reading
from workbench.vocabulary import plain

SHORTEST = 3  # letters that are looked for
AGAIN = 300  # milliseconds between looks whether the index is made
ROWS = 4  # places that stand open; the others are folded
MOST = 40  # places in all
SYSTEMS = 3  # systems named for each place
AROUND = 140  # letters of a text that are shown
KINDS = {"knob": "knob", "view": "view", "about": "help"}
DOORS = (  # what a person may have brought, where that is asked, in words
    ("", "a model"), ("runs", "a trace"), ("plan", "a cluster"), ("", "a claim"),
)  # fmt: skip
CSS = """
.elsewhere { margin: 0 0 6px; font-size: 13px; } .elsewhere h2 { margin: 14px 0 4px; }
.elsewhere ul { list-style: none; margin: 0; padding: 0; }
.elsewhere li { padding: 3px 0; color: var(--wb-faint); }
.elsewhere b { color: var(--wb-ink); font-weight: 600; }
.elsewhere .kind { display: inline-block; min-width: 38px; font-size: 12px; }
.elsewhere mark { background: none; color: var(--wb-ink); font-weight: 600; }
.elsewhere summary { cursor: pointer; padding: 3px 0; color: var(--wb-accent); }
"""


class Elsewhere:
    """What stands under the search field. The index is made beside, with the first words typed."""

    def __init__(self) -> None:
        self.pane = html("", CSS)
        self._sought: tuple[str, bool] = ("", False)

    def look(self, text: str, dark: bool) -> None:
        """Show where `text` stands, now or once the index is made."""
        self._sought = (text, dark)
        if len(text.strip()) < SHORTEST:
            self.pane.object = ""
        elif not reading().is_alive():
            self.pane.object = elsewhere(text, dark)
        else:
            self.pane.object = "<p class='faint'>Looking in knobs, views and help …</p>"
            document: Any = pn.state.curdoc
            if document is not None:
                document.add_timeout_callback(lambda: self.look(*self._sought), AGAIN)


def elsewhere(text: str, dark: bool) -> str:
    """Knobs, views and help texts that say `text`, as escaped HTML; "" where none does."""
    places = found(text)
    if not places:
        return ""
    lines = [_line(place, text, dark) for place in places[:MOST]]
    more = lines[ROWS:]
    left = f"<li>and {len(places) - MOST} more: say more words</li>" if len(places) > MOST else ""
    rest = (
        f"<details><summary>{len(places) - ROWS} more</summary>"
        f"<ul>{''.join(more)}{left}</ul></details>"
    )
    return (
        "<div class='elsewhere'><h2>Also in knobs, views and help</h2>"
        f"<ul>{''.join(lines[:ROWS])}</ul>{rest if more else ''}</div>"
    )


def _line(place: Place, text: str, dark: bool) -> str:
    query = {place.kind: place.at} if place.at else {}
    links = [
        f'<a href="{escape(address("study", dark, slug=slug, **query))}">'
        f"{escape(entry(slug).title)}</a>"
        for slug in place.systems[:SYSTEMS]
    ]
    rest = len(place.systems) - SYSTEMS
    more = f" and {counted(rest, 'other')}" if rest > 0 else ""
    said = _marked(_piece(place.words, text), text)
    name = f"<b>{escape(place.name)}</b> · " if place.kind != "about" else ""
    return (
        f"<li><span class='kind'>{KINDS[place.kind]}</span> {name}{said} · "
        f"{', '.join(links)}{more}</li>"
    )


def _pattern(text: str) -> re.Pattern[str]:
    """Where a text says one of the words, hyphens and underlines being blanks."""
    words = "|".join(re.escape(word) for word in plain(text).split())
    return re.compile(rf"(?<![^\W_])({words})", re.IGNORECASE)


def _piece(said: str, text: str) -> str:
    """As much of `said` as is shown, from the sentence in which the first of the words stands."""
    at = _pattern(text).search(said)
    start = said.rfind(". ", 0, at.start()) + 2 if at and at.start() > AROUND // 2 else 0
    start = 0 if start == 1 else start  # no sentence ends before it
    piece = said[start : start + AROUND]
    return piece + ("…" if start + AROUND < len(said) else "")


def _marked(piece: str, text: str) -> str:
    parts = _pattern(text).split(piece)
    return "".join(
        f"<mark>{escape(part)}</mark>" if n % 2 else escape(part) for n, part in enumerate(parts)
    )


def nothing(text: str, dark: bool) -> str:
    """What stands where no system has the words: the family that comes nearest, and the doors."""
    near = nearest_family(text)
    ways = [near] if near else list(families())
    links = [
        f'<a href="{escape(address("catalogue", dark, family=way))}">{escape(way)}</a>'
        for way in ways
    ]
    said = "The nearest family: " if near else "Families: "
    doors = [
        f'<a href="{escape(address(where, dark))}">{escape(what)}</a>' for where, what in DOORS
    ]
    return (
        '<p class="none">No system has these words. '
        f"{said}{', '.join(links)}. Or start from what you have: {', '.join(doors)}.</p>"
    )
