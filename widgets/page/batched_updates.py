"""Batched updates: changes to a page sent as one message. Each costs the server a walk over all its
models."""

from contextlib import AbstractContextManager, nullcontext

import panel as pn
from panel.io import hold


def batched_updates() -> AbstractContextManager[None]:
    """Collect what changes in the present page and send it at the end.

    Before a page has loaded, `hold` drops what it collects: the page would stay behind.
    """
    return hold() if pn.state.loaded else nullcontext()
