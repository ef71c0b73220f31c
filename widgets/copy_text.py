"""A button that copies text in the browser."""

from pathlib import Path

import param
from panel.custom import AnyWidgetComponent

from widgets import theme


class CopyText(AnyWidgetComponent):
    """Puts `text` on the clipboard of whoever presses it."""

    _esm = Path(__file__).with_suffix(".js").read_text()
    _react_version = "18.3.1"  # the one panel-material-ui brings: two of them warn about each other

    label = param.String(default="Copy")
    text = param.String(default="")
    ink = param.String(default=theme.LIGHT.ink)
    line = param.String(default=theme.LIGHT.line)
    font = param.String(default=theme.FONT)
    is_dark = param.Boolean(default=False)

    def dark(self, on: bool) -> None:
        """Follow the page's theme."""
        paint = theme.scheme(on)
        self.param.update(is_dark=on, ink=paint.ink, line=paint.line)
