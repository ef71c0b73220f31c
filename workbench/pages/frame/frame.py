"""What a page takes after: a host on the same origin that frames it, such as JupyterLab (its theme
and width), or the system's colour scheme, until the person chooses one.
"""

from functools import partial
from typing import Any

import panel as pn
import param

from widgets.page.component import Component

FRAMES = ("lab", "lab-narrow", "lab-tight")  # an address's `frame`, by the room in JupyterLab
NARROW = 1150  # pixels below which the right column folds away
TIGHT = 800  # pixels below which the left one does, too


# Tells the width of the window as `width_now`, now and when it has changed; `forget` ends that.
MEASURE = """
        let timer = 0;
        const measure = () => {
          if (!window.innerWidth) return;
          model.set("width_now", window.innerWidth);
          model.save_changes();
        };
        const resized = () => { clearTimeout(timer); timer = setTimeout(measure, 150); };
        window.addEventListener("resize", resized);
        resized();
        const forget = () => window.removeEventListener("resize", resized);
"""


class Host(Component):
    """Nothing to see. `dark` is what the host last said; it is listened to, no other window is.

    The host hears the page's title once the page is there. `width_now`: pixels of the frame
    when it was last seen.
    """

    dark = param.Boolean(default=False)
    title = param.String(default="")
    width_now = param.Integer(default=0)

    _esm = """
    export default {
      render({ model }) {
        const set = (name, value) => { model.set(name, value); model.save_changes(); };
        const heard = (event) => {
          const said = event.data?.workbenchDark;
          if (event.source !== window.parent || event.origin !== window.location.origin) return;
          if (typeof said === "boolean") set("dark", said);
        };
        window.addEventListener("message", heard);
        MEASURE
        const ready = { workbenchReady: model.get("title") };
        window.parent.postMessage(ready, window.location.origin);
        return () => {
          window.removeEventListener("message", heard);
          forget();
        };
      },
    };
    """.replace("MEASURE", MEASURE)


def host(title: str, page: Any) -> Host:
    """What makes `page` follow its host; put it anywhere in the page.

    A column that was folded for want of room opens when there is room; a person may open it before.
    """
    made = Host(title=title, dark=page.dark_theme, width=0, height=0, margin=0)
    made.param.watch(lambda event: setattr(page, "dark_theme", bool(event.new)), "dark")
    fold(page, made)
    return made


def fold(page: Any, measured: Component) -> None:
    """Fold a page's columns where `measured` tells of a window without room for them."""

    def resized(event: Any) -> None:
        for name, least in (("contextbar", NARROW), ("sidebar", TIGHT)):
            fitted, fits = not 0 < event.old < least, event.new >= least
            if fits != fitted and getattr(page, name):
                setattr(page, f"{name}_open", fits)

    def heard(event: Any) -> None:
        # What changes before a page has loaded does not reach its browser.
        if pn.state.loaded:
            resized(event)
        else:
            pn.state.onload(partial(resized, event))

    measured.param.watch(heard, "width_now")


CHOSEN = "workbench-theme"  # the cookie of a person's choice: light or dark


class SystemScheme(Component):
    """Nothing to see. `dark`: what the system prefers, where neither the address nor the person
    chose. What a person chooses is kept in the browser, there and then: the next page asks for
    it, and may be asked for before this one's server has heard."""

    dark = param.Boolean(default=False)
    asked = param.Boolean(default=False)  # the address says which theme
    width_now = param.Integer(default=0)  # pixels of the window

    key = param.String(default=CHOSEN)
    switch = param.String(default="Toggle theme", doc="its label")

    _esm = """
    export default {
      render({ model }) {
        const key = model.get("key");
        const system = window.matchMedia("(prefers-color-scheme: dark)");
        const follow = () => {
          if (model.get("asked") || document.cookie.includes(`${key}=`)) return;
          if (system.matches === model.get("dark")) return;
          model.set("dark", system.matches);
          model.save_changes();
        };
        const press = (event) => {
          const label = (node) => node.getAttribute?.("aria-label");
          if (!event.composedPath().some((node) => label(node) === model.get("switch"))) return;
          const dark = !model.get("dark");
          const kept = "path=/; max-age=31536000; samesite=lax";
          document.cookie = `${key}=${dark ? "dark" : "light"}; ${kept}`;
          model.set("dark", dark);
          model.save_changes();
        };
        system.addEventListener("change", follow);
        MEASURE
        document.addEventListener("click", press, true);  // before the switch itself hears of it
        follow();
        return () => {
          system.removeEventListener("change", follow);
          document.removeEventListener("click", press, true);
          forget();
        };
      },
    };
    """.replace("MEASURE", MEASURE)


def system_scheme(page: Any, asked: bool) -> SystemScheme:
    """What makes `page` follow the system; put it anywhere in the page. `asked`: the address says
    which theme it wants."""
    made = SystemScheme(dark=page.dark_theme, asked=asked, width=0, height=0, margin=0)

    def follow() -> None:
        page.dark_theme = made.dark

    # What changes before a page has loaded does not reach its browser.
    made.param.watch(lambda _: follow() if pn.state.loaded else pn.state.onload(follow), "dark")

    def turned(event: Any) -> None:
        # `dark` has heard of a press before the page has: else it is a late echo of how it was.
        if bool(event.new) != made.dark:
            page.dark_theme = made.dark

    page.param.watch(turned, "dark_theme")
    fold(page, made)
    return made
