"""Curves of a job as it goes: held-out loss by step and by bytes, and how far replicas differ."""

from collections.abc import Sequence

import numpy as np
import torch

from engine.core.events import Level
from engine.core.plot import Plot
from engine.core.run import Live
from engine.training.low_communication.job import Sample

LOSS = "loss (nats per character)"
STEPS = Plot("held-out loss by step", "step", LOSS, zero=False)
BYTES = Plot("held-out loss by bytes", "bytes sent by a replica (B)", LOSS, log_x=True, zero=False)
SPREAD = Plot("spread of replicas", "step", "deviation over size of the weights")
PLOTS = (BYTES, STEPS, SPREAD)


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
        self.live.curve(now, STEPS, self.series, np.stack([step, loss, low, high]))
        self.live.curve(now, SPREAD, self.series, np.stack([step, apart]))
        if (sent > 0).all():
            self.live.curve(now, BYTES, self.series, np.stack([sent, loss, low, high]))

    def _add(self, samples: Sequence[Sample], now: float) -> None:
        losses = [sample.held_out for sample in samples]
        sent = sum(sample.sent for sample in samples) / len(samples)
        mean, apart = sum(losses) / len(losses), spread(samples)
        self.rows.append((samples[0].step, sent, mean, min(losses), max(losses), apart))
        if self.levels:
            self.live.emit(Level(now, "all replicas", "held_out_loss", mean))
            self.live.emit(Level(now, "all replicas", "spread", apart))
