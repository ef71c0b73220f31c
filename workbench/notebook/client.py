"""Notebook client whose kernel is ended once its cells have printed more than they may."""

import asyncio
import json
from typing import Any

from nbclient import NotebookClient
from nbformat import NotebookNode

from engine.core.limits import limits

ASIDE = ("status", "execute_input", "comm_open", "comm_msg", "comm_close")  # messages, not outputs


class Client(NotebookClient):
    """`printed`: characters of outputs so far; what is beyond `output_bytes` is not kept.

    A kernel that prints without end would hold up its own timeout: each piece is put behind all
    that came before, in the loop that watches the clock.
    """

    printed = 0
    _ending: asyncio.Future[Any] | None = None  # once it is full

    @property
    def full(self) -> bool:
        return self.printed > limits().output_bytes

    async def _async_cleanup_kernel(self) -> None:
        if self._ending is not None:  # two at once would trip over each other
            await asyncio.wait([self._ending])
        await super()._async_cleanup_kernel()

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        if msg["msg_type"] not in ASIDE:
            if self.full:
                return None
            self.printed += len(json.dumps(msg["content"], default=str))
            if self.full:
                if self.km is not None:
                    self._ending = asyncio.ensure_future(self.km.shutdown_kernel(now=True))
                return None
        return super().process_message(msg, cell, cell_index)
