"""A page in the frame of a host on the same origin, such as JupyterLab: it follows its theme."""

from collections.abc import Callable
from typing import Any

import param
from panel.custom import AnyWidgetComponent

FRAMES = ("lab", "lab-narrow")  # an address's `frame` where a page stands in JupyterLab


class HostTheme(AnyWidgetComponent):
    """Nothing to see. `dark` is what the host last said; it is listened to, no other window is.

    The host hears the page's title once the page is there.
    """

    dark = param.Boolean(default=False)
    title = param.String(default="")

    _esm = """
    export default {
      render({ model }) {
        const heard = (event) => {
          const said = event.data?.workbenchDark;
          if (event.source !== window.parent || event.origin !== window.location.origin) return;
          if (typeof said !== "boolean") return;
          model.set("dark", said);
          model.save_changes();
        };
        window.addEventListener("message", heard);
        const ready = { workbenchReady: model.get("title") };
        window.parent.postMessage(ready, window.location.origin);
        return () => window.removeEventListener("message", heard);
      },
    };
    """


def host_theme(title: str, dark: bool, tell: Callable[[bool], Any]) -> HostTheme:
    """What calls `tell` at each change of the host's theme; put it anywhere in the page."""
    heard = HostTheme(title=title, dark=dark, width=0, height=0, margin=0)
    heard.param.watch(lambda event: tell(bool(event.new)), "dark")
    return heard
