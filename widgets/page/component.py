"""A component of a page drawn by an ES module of our own: what all of them have in common."""

from typing import Any

import panel as pn
from panel.custom import AnyWidgetComponent
from param.parameterized import discard_events

from widgets.page.batched_updates import batched_updates


class Component(AnyWidgetComponent):
    """A module with plain nodes and no React in it, hosted by Panel."""

    __abstract = True

    _bundle_path = None  # Panel would look for one on the disk, for every component of every page
    _debounce = 0  # milliseconds; Panel lets what a person did lie for 50 before it is heard

    @classmethod
    def _process_importmap(cls) -> dict[str, Any]:
        """Nothing: what our modules import is bundled with them."""
        return {}

    @classmethod
    def _render_esm(cls, compiled: Any = True, server: bool = False) -> str:
        return str(cls._esm)

    def send(self, **changes: Any) -> None:
        """Set traits here and in the browser, where they differ; nobody in Python is told.

        On the way that Panel takes every change is looked up among themes, files and close names,
        which costs more than most pictures. It is taken only where a page is not the present one.
        """
        changed = {name: value for name, value in changes.items() if getattr(self, name) != value}
        if not changed:
            return
        if not all(self._is_here(ref) for ref in self._models):
            self.param.update(**changed)
            return
        with discard_events(self):
            for name, value in changed.items():
                setattr(self, name, value)
        with batched_updates():
            for ref, (model, _) in self._models.items():
                self._changing[ref] = list(changed)  # or it would be taken for a person's doing
                try:
                    model.data.update(**changed)
                finally:
                    self._changing.pop(ref, None)

    def _is_here(self, ref: str) -> bool:
        """Whether the page with this root is the one this is called from, loaded and connected."""
        shown = pn.state._views.get(ref)
        return shown is not None and shown[3] is None and pn.state._unblocked(shown[2])
