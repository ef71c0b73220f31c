"""Curves of a job as it goes: held-out loss by step and by bytes, and how far replicas differ."""

from collections.abc import Sequence

import numpy as np
import torch

from engine.core.events import Blob, Level
from engine.core.run import Live
from engine.training.low_communication.job import Sample

STEPS, BYTES, SPREAD = "held-out loss by step", "held-out loss by bytes", "spread of replicas"
LOSS = "loss (nats per character)"
AXES = {
    STEPS: {"x": "step", "y": LOSS, "zero": False},
    BYTES: {"x": "bytes sent by a replica (B)", "y": LOSS, "log_x": True, "zero": False},
    SPREAD: {"x": "step", "y": "deviation over size of the weights"},
}


def spread(samples: Sequence[Sample]) -> float:
    """Root mean square deviation of the replicas' weights from their mean, over that of it."""
    weights_RP = torch.stack([sample.weights_P for sample in samples])
    mean_P = weights_RP.mean(0)
    return float((weights_RP - mean_P).square().mean().sqrt() / mean_P.square().mean().sqrt())


class Progress:
    """Draws what all replicas have reached. `rows`: (step, bytes, mean, lowest and highest held-out
    loss, spread) so far; bytes are the mean over replicas. `levels`: whether to tell them too."""

    def __init__(self, live: Live, series: str, levels: bool = True) -> None:
        self.live, self.series, self.levels = live, series, levels
        self.rows: list[tuple[float, ...]] = []

    def reached(self, samples: Sequence[Sequence[Sample]], now: float) -> None:
        """Told the samples of every replica; draws those that all have."""
        common = min(len(each) for each in samples)
        if common <= len(self.rows):
            return
        for number in range(len(self.rows), common):
            self._add([each[number] for each in samples], now)
        table = np.array(self.rows).T
        step, sent, loss, low, high, apart = table
        self._curve(STEPS, np.stack([step, loss, low, high]), now)
        self._curve(SPREAD, np.stack([step, apart]), now)
        if (sent > 0).all():
            self._curve(BYTES, np.stack([sent, loss, low, high]), now)

    def _add(self, samples: Sequence[Sample], now: float) -> None:
        losses = [sample.held_out for sample in samples]
        sent = sum(sample.sent for sample in samples) / len(samples)
        mean, apart = sum(losses) / len(losses), spread(samples)
        self.rows.append((samples[0].step, sent, mean, min(losses), max(losses), apart))
        if self.levels:
            self.live.emit(Level(now, "all replicas", "held_out_loss", mean))
            self.live.emit(Level(now, "all replicas", "spread", apart))

    def _curve(self, panel: str, rows: np.ndarray, now: float) -> None:
        name = f"curve/{panel}/{self.series}"
        ref = f"{name}#{rows.shape[1]}"
        self.live.log.blobs[ref] = rows.astype(np.float64)
        self.live.emit(Blob(now, name, ref, list(rows.shape)))
