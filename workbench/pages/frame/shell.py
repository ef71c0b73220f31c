"""The frame every page of the app stands in: places to go, theme, knobs left, claims right.

All text from outside passes through `escape` before it becomes HTML. Nothing is fetched from the
network: fonts are the system's, icons come with the components.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from html import escape
from typing import Any
from urllib.parse import urlencode

import panel as pn
import panel_material_ui as pmui
from panel.io.resources import LOCAL_DIST
from panel.util import edit_readonly

from widgets.knobs.config_text import spelled
from widgets.theme import DARK, FONT, LIGHT, Scheme, scheme, wrong
from workbench.pages.frame.files import by_address, template
from workbench.pages.frame.frame import CHOSEN, FRAMES, host, system_scheme
from workbench.pages.frame.visitors import HINT

PLACES = (
    ("", "Start"),
    ("live", "Live engine"),
    ("catalogue", "Catalogue"),
    ("plan", "Plan"),
    ("predict", "Predict"),
    ("roofline", "Roofline"),
    ("compare", "Compare"),
    ("runs", "Runs"),
)
LOW = {  # the bar of a page in a tab, whose host has its own places to go
    "& .header .title": {"fontSize": "14px", "fontWeight": 600, "color": "var(--wb-faint)"},
}
CLOSE = {"maxWidth": "470px"}
FOCUSED = {"outline": "2px solid var(--wb-accent)", "outlineOffset": "1px"}  # by keys
LABELS = {  # names of fields on their rims, of 12 pixels: Material has 10
    "MuiInputLabel": {
        "styleOverrides": {
            "root": {"fontSize": "14px !important"},  # a select's label has a size of its own
            "shrink": {"transform": "translate(14px, -9px) scale(0.857)"},
        }
    },
    # As high as a field of text beside it.
    "MuiSelect": {"styleOverrides": {"select": {"paddingTop": "8.5px", "paddingBottom": "8.5px"}}},
    "MuiButtonBase": {"styleOverrides": {"root": {"&:focus-visible, &.Mui-focusVisible": FOCUSED}}},
    "MuiButton": {"styleOverrides": {"root": {"fontSize": "14px"}}},
    "MuiInputBase": {"styleOverrides": {"root": {"fontSize": "14px"}}},
    "MuiToggleButton": {"styleOverrides": {"root": {"fontSize": "14px"}}},
    "MuiOutlinedInput": {
        "styleOverrides": {"notchedOutline": {"& legend": {"fontSize": "0.92em"}}}
    },
}
ACCENT = {"light": "#0067A3", "dark": "#5BB3E8"}

CSS = """
:host { font-family: var(--wb-font); color: var(--wb-ink); font-size: 14px; line-height: 1.5; }
a { color: var(--wb-accent); text-decoration: none; } a:hover { text-decoration: underline; }
a:focus-visible, summary:focus-visible, button:focus-visible {
  outline: 2px solid var(--wb-accent); outline-offset: 2px; border-radius: 4px; }
h1 { font-size: 22px; font-weight: 600; letter-spacing: -0.01em; line-height: 1.2; margin: 0; }
h2 { font-size: 16px; font-weight: 600; margin: 0; } p { margin: 0; max-width: 78ch; }
.faint { color: var(--wb-faint); } .small { font-size: 12px; }
.num { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
kbd, code { font-family: ui-monospace, 'SF Mono', Menlo, Consolas, monospace; font-size: 12px; }
table.figures { border-collapse: collapse; font-size: 14px; }
.figures th { text-align: left; font-weight: 400; color: var(--wb-faint); padding: 3px 28px 3px 0; }
.figures td { padding: 3px 28px 3px 0; } .figures thead th { font-weight: 600; text-align: right; }
.figures thead th:first-child { text-align: left; }
.nav { display: flex; gap: 4px; align-items: center; height: 100%; }
.nav a { color: var(--wb-faint); padding: 6px 12px; border-radius: 8px; font-weight: 500; }
@media (max-width: 1000px) { .nav { gap: 0; } .nav a { padding: 6px 5px; font-size: 12px; } }
.nav a:hover { color: var(--wb-ink); background: var(--wb-raised); text-decoration: none; }
.nav a[aria-current] { color: var(--wb-ink); background: var(--wb-raised); }
"""


def colours(of: Scheme, name: str) -> dict[str, str]:
    """A theme's colours as CSS variables, which reach into every component of the page."""
    neutral = {f"--wb-{field.name}": getattr(of, field.name) for field in fields(of)}
    own = {"--wb-accent": ACCENT[name], "--wb-wrong": wrong(name == "dark"), "--wb-font": FONT}
    return {**neutral, **own}


def html(text: str, css: str = "", **params: Any) -> pn.pane.HTML:
    """A pane of our own HTML (already escaped) in the page's style."""
    params.setdefault("sizing_mode", "stretch_width")
    params.setdefault("margin", 0)
    return pn.pane.HTML(text, stylesheets=[CSS + css], **params)


def prose(text: str) -> str:
    """A text as HTML, what stands `in backticks` as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def figures_table(rows: Sequence[tuple[str, ...]], head: Sequence[str] = ()) -> str:
    """Names left, values right-aligned, as an escaped HTML table."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr><th scope='row'>{escape(name)}</th>"
        + "".join(f"<td class='num'>{escape(value)}</td>" for value in values)
        + "</tr>"
        for name, *values in rows
    )
    top = f"<thead><tr>{cells}</tr></thead>" if head else ""
    return f"<table class='figures'>{top}<tbody>{body}</tbody></table>"


def address(place: str, dark: bool, **query: Any) -> str:
    """The address of a page from any other, keeping the theme and the frame it stands in.

    Relative, so that it holds below whatever path the app is served.
    """
    return f"./{place}{_spelled(query, dark)}"


def carry(dark: bool, **query: Any) -> None:
    """Let the browser's address of this page say `query`, keeping the theme and the frame."""
    location = pn.state.location
    if location is not None:
        location.search = _spelled(query, dark)


def _spelled(query: Mapping[str, Any], dark: bool) -> str:
    query = {**query, **({"theme": "dark"} if dark else {}), **framed()}
    told = urlencode({name: spelled(value) for name, value in query.items()})
    return f"?{told}" if told else ""


def framed() -> dict[str, str]:
    """What of the query says that this page stands in a host's frame."""
    return {"frame": asked("frame")} if asked("frame") in FRAMES else {}


def asked(name: str, default: str = "") -> str:
    """One value of the address's query."""
    values = (pn.state.session_args or {}).get(name, [])
    return values[0].decode("utf-8", "replace") if values else default


def asked_all(name: str) -> list[str]:
    """Every value of that name in the address's query."""
    values = (pn.state.session_args or {}).get(name, [])
    return [value.decode("utf-8", "replace") for value in values]


def asked_knobs() -> dict[str, str]:
    """All of the address's query, the first value of each name."""
    query = (pn.state.session_args or {}).items()
    return {name: values[0].decode("utf-8", "replace") for name, values in query}


def asked_dark() -> bool:
    """Whether a page begins dark: as its address says, else as the person last chose, else as the
    browser says of the system (where it says so before it has the page)."""
    if asked("theme"):
        return asked("theme") == "dark"
    if pn.state.curdoc is None or pn.state.curdoc.session_context is None:
        return False
    chosen = (pn.state.cookies or {}).get(CHOSEN)
    return (chosen or (pn.state.headers or {}).get(HINT, "").strip('"')) == "dark"


class Shell:
    """A page under construction: put things into it, then serve `page`.

    `bare`: without places to go, for a page alone in a notebook's cell. `tab`: what the
    browser calls it, where the title comes from outside.
    """

    def __init__(self, title: str, place: str, *, bare: bool = False, tab: str = "") -> None:
        self.place, self.title = place, title
        self.dark = asked_dark()
        self._listeners: list[Callable[[bool], None]] = []
        self._nav = html("", width=700, sizing_mode="fixed", height=36, align="center")
        self.narrow = asked("frame") in FRAMES[1:]
        in_tab = bool(framed()) and not bare
        self.page = pmui.Page(
            title="Parallel Workbench",
            site_url=address("", self.dark),
            meta_title=f"{tab or title} · Parallel Workbench",
            header=[],
            dark_theme=self.dark,
            theme_toggle=not in_tab,
            theme_config=theme_config(),
            sx={**_sx(), **(LOW if in_tab else {})},
            sizing_mode="stretch_both",
            sidebar_open=asked("frame") != FRAMES[2],
            sidebar_resizable=False,  # its grip has no role and no key
            busy_indicator=None,
            template=template("rest"),
            hooks=[by_address],
        )
        _untie(self.page)
        self.page.param.watch(self._themed, "dark_theme")
        if in_tab:
            self.page.header = [host(title, self.page)]
        elif not bare:
            self.page.header = [self._nav, system_scheme(self.page, bool(asked("theme")))]
        self._paint()
        if pn.state.curdoc is not None:
            # Panel asks its makers' host for styles unless a page says where they are.
            look = {"font": FONT, "dist_url": LOCAL_DIST, **asdict(scheme(self.dark))}
            pn.state.curdoc.template_variables.update(look)

    def on_dark(self, tell: Callable[[bool], None]) -> None:
        """Call `tell` with whether the theme is dark, now and at each change."""
        self._listeners.append(tell)
        tell(self.dark)

    def _themed(self, event: Any) -> None:
        self.dark = bool(event.new)
        self._paint()
        for tell in self._listeners:
            tell(self.dark)

    def _paint(self) -> None:
        links = [
            f'<a href="{escape(address(place, self.dark))}"'
            f"{' aria-current=page' if place == self.place else ''}>{escape(name)}</a>"
            for place, name in PLACES
        ]
        self._nav.object = f'<nav class="nav" aria-label="pages">{"".join(links)}</nav>'


def _untie(page: pmui.Page) -> None:
    """Part a page from the server's busy sign: each change of it would make Bokeh walk every model
    of the page, many times a second. What watched the sign for the page goes too, or the sign would
    keep every page that ever was, as it lives as long as the server (param 2.4.2 leaves it)."""
    with edit_readonly(page):
        page.busy = False
    own = page._param__private
    for _, watcher in own.ref_watchers:
        pn.state.param.unwatch(watcher)
    own.ref_watchers = []


def theme_config() -> dict[str, Any]:
    """Material's theme with our colours and the system's font, for light and dark."""
    return {
        name: {
            "palette": {
                "primary": {"main": ACCENT[name]},
                "background": {"default": neutral.paper, "paper": neutral.paper},
                "text": {"primary": neutral.ink, "secondary": neutral.faint},
                "divider": neutral.line,
            },
            "typography": {"fontFamily": FONT, "fontSize": 13, "button": {"textTransform": "none"}},
            "shape": {"borderRadius": 8},
            "components": LABELS,
        }
        for name, neutral in (("light", LIGHT), ("dark", DARK))
    }


def _sx() -> dict[str, Any]:
    quiet = {"boxShadow": "none", "backgroundImage": "none"}
    return {
        "&.mui-light": colours(LIGHT, "light"),
        "&.mui-dark": colours(DARK, "dark"),
        "& .MuiToolbar-root": {"minHeight": "44px !important"},
        "& .header.MuiAppBar-root": {
            **quiet,
            "backgroundColor": "var(--wb-paper) !important",
            "color": "var(--wb-ink) !important",
            "borderBottom": "1px solid var(--wb-line)",
        },
        # The places stand closer there, so that the buttons beside them have room.
        "@media (max-width: 1000px)": {"& .header .bk-panel-models-markup-HTML": CLOSE},
        "& .header .title": {
            "color": "var(--wb-ink) !important",
            "fontSize": "16px",
            "fontWeight": 600,
            "letterSpacing": "-0.01em",
            "marginRight": "20px",
            "whiteSpace": "nowrap",
        },
        "& .MuiDrawer-paper": {**quiet, "backgroundColor": "var(--wb-paper)"},
        "& .main": {"backgroundColor": "var(--wb-paper)"},
        "& .header .MuiLinearProgress-root": {"display": "none"},  # views tick: it never rests
    }


def message_page(title: str, line: str) -> Any:
    """A page that says one thing."""
    shell = Shell(title, "")
    text = f"<h1>{escape(title)}</h1><p>{escape(line)}</p>"
    back = f"<p><a href='{escape(address('catalogue', shell.dark))}'>To the catalogue</a></p>"
    shell.page.main = [html(text + back, margin=(60, 40))]
    return shell.page
