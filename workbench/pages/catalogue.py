"""The catalogue page: every system, searched as one types; what is built opens its study."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.names import counted
from workbench.catalogue import Entry, catalogue, families, search
from workbench.findings_table import HEAD, by_family, findings_line, findings_of
from workbench.pages.frame.shell import Shell, address, asked, figures_table, html
from workbench.pages.thumbnails import CSS as THUMBNAIL
from workbench.pages.thumbnails import thumbnail
from workbench.search.found_elsewhere import Elsewhere, nothing
from workbench.trainings import record

CSS = (
    THUMBNAIL
    + """
.family { margin: 28px 0 10px; display: flex; gap: 10px; align-items: baseline; }
.family h2::first-letter { text-transform: uppercase; }
.grid { display: grid; gap: 12px; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); }
.card { border: 1px solid var(--wb-line); border-radius: 12px; padding: 14px 16px; }
.card summary { cursor: pointer; list-style: none; display: block; }
.card summary::-webkit-details-marker { display: none; }
.card .name { font-weight: 600; color: var(--wb-ink); }
.card .paper { color: var(--wb-faint); font-size: 12px; line-height: 1.4; margin-top: 3px; }
.card .more { margin-top: 10px; padding-top: 10px; border-top: 1px solid var(--wb-line);
  font-size: 14px; display: grid; gap: 6px; }
.card .more b { font-weight: 600; }
.row { display: flex; justify-content: space-between; gap: 10px; align-items: baseline; }
.tag { font-size: 12px; color: var(--wb-faint); white-space: nowrap; }
a.card { display: block; color: inherit; background: var(--wb-raised); border-color: transparent; }
a.card:hover { text-decoration: none; border-color: var(--wb-accent); }
a.card .tag { color: var(--wb-accent); font-weight: 600; }
.chips { display: flex; flex-wrap: wrap; gap: 6px; margin-top: 8px; }
.chips span { font-size: 12px; color: var(--wb-faint); border: 1px solid var(--wb-line);
  border-radius: 10px; padding: 1px 8px; }
.chips span.modelled { border-style: dashed; }
a.card p { font-size: 14px; margin-top: 8px; }
.ready { grid-template-columns: repeat(auto-fill, minmax(380px, 1fr)); }
.none { padding: 40px 0; color: var(--wb-faint); }
"""
)


def findings_table(rows: Sequence[dict[str, Any]]) -> str:
    """The findings of all recorded claims by family; "" where there are none."""
    if not rows:
        return ""
    notes = "".join(f"<p>{escape(note)}</p>" for note in record.notes())
    return (
        "<details class='card'><summary><span class='name'>What came out: "
        f"{counted(len(rows), 'claim')} and their findings</span></summary><div class='more'>"
        f"{figures_table(by_family(rows), HEAD)}{notes}</div></details>"
    )


def built_card(entry: Entry, dark: bool, rows: Sequence[dict[str, Any]] = ()) -> str:
    """A system that can be run; `rows`: recorded findings, of any system."""
    found = findings_line(findings_of(entry.slug, rows))
    more = f'<div class="paper">{escape(found)}</div>' if found else ""
    return (
        f'<a class="card" href="{escape(address("study", dark, slug=entry.slug))}">'
        f"{thumbnail(entry.slug, dark)}"
        f'<div class="row"><span class="name">{escape(entry.title)}</span>'
        f'<span class="tag">open →</span></div>'
        f'<div class="paper">{escape(entry.paper)}</div><p>{escape(entry.about)}</p>{more}'
        f'<div class="chips">{_chips(entry, rows)}</div></a>'
    )


def _chips(entry: Entry, rows: Sequence[dict[str, Any]]) -> str:
    """Family, the year that an arXiv number tells, how many claims of which grade."""
    year = f"20{entry.arxiv[:2]}" if entry.arxiv[:4].isdigit() else ""
    made = [f"<span>{escape(text)}</span>" for text in (entry.family, year) if text]
    grades = Counter(str(row["grade"]) for row in rows if row["slug"] == entry.slug)
    for grade, count in grades.most_common():
        kind = " class='modelled'" if grade == "modelled" else ""
        made.append(f"<span{kind}>{counted(count, 'claim')} {escape(grade)}</span>")
    return "".join(made)


def plan_card(entry: Entry) -> str:
    return (
        '<details class="card"><summary>'
        f'<div class="row"><span class="name">{escape(entry.title)}</span>'
        '<span class="tag">not built yet</span></div>'
        f'<div class="paper">{escape(entry.paper)}</div></summary><div class="more">'
        f"<div><b>What will run</b><br>{escape(entry.about)}</div>"
        f"<div><b>What must then hold</b><br>{escape(entry.claim)}</div></div></details>"
    )


def listing(
    found: Sequence[Entry], dark: bool, rows: Sequence[dict[str, Any]] = (), text: str = ""
) -> str:
    """The cards: what can be opened first, then the rest by family. `text`: what was sought."""
    if not found:
        return nothing(text, dark)
    ready = [built_card(entry, dark, rows) for entry in found if entry.built]
    parts = []
    if ready:
        parts.append(_section("Ready to run", len(ready), "ready", ready))
    for family in dict.fromkeys(entry.family for entry in found):
        cards = [plan_card(e) for e in found if e.family == family and not e.built]
        if cards:
            parts.append(_section(family, len(cards), "", cards))
    return "".join(parts)


def _section(name: str, count: int, kind: str, cards: list[str]) -> str:
    return (
        f'<div class="family"><h2>{escape(name)}</h2><span class="tag">{count}</span></div>'
        f'<div class="grid {kind}">{"".join(cards)}</div>'
    )


def catalogue_page() -> Any:
    """The page, for one person."""
    shell = Shell("Catalogue", "catalogue")
    rows = record.headlines()
    total, built = len(catalogue()), sum(entry.built for entry in catalogue())
    words = pmui.TextInput(
        label="Search",
        placeholder="a name, a paper, an idea",
        size="small",
        width=340,
        margin=(0, 12, 0, 0),
    )
    family = pmui.Select(
        label="Family",
        options={"all families": "", **{f: f for f in families()}},
        value=asked("family") if asked("family") in families() else "",
        size="small",
        width=200,
        margin=(0, 12, 0, 0),
    )
    state = pmui.RadioButtonGroup(
        options={"All": "all", "Built": "built", "Not built yet": "not"},
        value="all",
        size="small",
        width=320,
        margin=0,
    )
    cards, beside = html("", CSS), Elsewhere()

    def show(*_: Any) -> None:
        wanted = {"all": None, "built": True, "not": False}[state.value]
        found = search(words.value_input or "", family.value or "", wanted)
        sought = words.value_input or ""
        cards.object = listing(found, shell.dark, rows, sought)
        beside.look(sought, shell.dark)

    words.param.watch(show, "value_input")
    family.param.watch(show, "value")
    state.param.watch(show, "value")
    shell.on_dark(show)
    head = html(
        f"<h1>{built} of {total} systems run here now</h1><p class='faint'>Each is a paper on "
        "parallel LLM systems, to be run, watched and checked; the others say what will run and "
        "what must then hold.</p>",
        margin=(0, 0, 18, 0),
    )
    controls = pn.FlexBox(
        words, family, state, align_items="center", sizing_mode="stretch_width", gap="10px 0"
    )  # fmt: skip
    shell.page.main_width, shell.page.app_bar_width = 1560, "100%"
    table = html(findings_table(rows), CSS, margin=(18, 0, 0, 0), visible=bool(rows))
    body = pn.Column(
        head, controls, beside.pane, table, cards, sizing_mode="stretch_width", margin=(28, 40)
    )
    shell.page.main = [body]
    return shell.page
