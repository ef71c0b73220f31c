"""A field for a name: offered from a list, or written."""

from typing import Any

import panel_material_ui as pmui
import param


class NameField(pmui.AutocompleteInput):
    """Takes what is not in its list as it is written.

    Panel (1.9.4, `SingleSelectBase`) takes such a value back and sets it again at once. Whoever
    watches hears of "" between, and so does the browser, whose component may write that back.
    """

    def __init__(self, **params: Any) -> None:
        super().__init__(
            restrict=False, min_characters=0, case_sensitive=False, search_strategy="includes",
            **params,
        )  # fmt: skip

    def _process_param_change(self, msg: dict[str, Any]) -> dict[str, Any]:
        with param.parameterized.discard_events(self):
            return dict(super()._process_param_change(msg))
