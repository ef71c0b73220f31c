"""How far a checkpoint is read: a line in the log as it begins, and one every second of it."""

import logging
import time

EVERY = 1.0  # seconds between lines
GB = 1e9
LOG = logging.getLogger(__name__)


class Reading:
    """Bytes of a model's `total` that have been read. Whoever wants the lines asks for INFO."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done, self.told = what, total, 0, 0.0

    def took(self, size: int) -> None:
        """Another tensor of `size` bytes was read; one read again later is no progress."""
        if self.done >= self.total or not LOG.isEnabledFor(logging.INFO):
            return
        now, begins = time.monotonic(), not self.done
        self.done = min(self.total, self.done + size)
        if begins or now - self.told >= EVERY:
            self.told, of = now, f"{self.total / GB:.3g} GB"
            LOG.info("loading %s: %s", self.what, of if begins else f"{self.done / GB:.3g} of {of}")
