"""A page in the frame of a host on the same origin, such as JupyterLab: its theme and width."""

from typing import Any

import param
from panel.custom import AnyWidgetComponent

FRAMES = ("lab", "lab-narrow", "lab-tight")  # an address's `frame`, by the room in JupyterLab
NARROW = 1150  # pixels below which the right column folds away
TIGHT = 800  # pixels below which the left one does, too


class Host(AnyWidgetComponent):
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
        let timer = 0;
        const measure = () => { if (window.innerWidth) set("width_now", window.innerWidth); };
        const resized = () => { clearTimeout(timer); timer = setTimeout(measure, 150); };
        window.addEventListener("message", heard);
        window.addEventListener("resize", resized);
        resized();
        const ready = { workbenchReady: model.get("title") };
        window.parent.postMessage(ready, window.location.origin);
        return () => {
          window.removeEventListener("message", heard);
          window.removeEventListener("resize", resized);
        };
      },
    };
    """


def host(title: str, page: Any) -> Host:
    """What makes `page` follow its host; put it anywhere in the page.

    A column that was folded for want of room opens when there is room; a person may open it before.
    """
    made = Host(title=title, dark=page.dark_theme, width=0, height=0, margin=0)

    def resized(event: Any) -> None:
        for name, least in (("contextbar", NARROW), ("sidebar", TIGHT)):
            fitted, fits = not 0 < event.old < least, event.new >= least
            if fits != fitted and getattr(page, name):
                setattr(page, f"{name}_open", fits)

    made.param.watch(lambda event: setattr(page, "dark_theme", bool(event.new)), "dark")
    made.param.watch(resized, "width_now")
    return made
