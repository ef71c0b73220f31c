"""Stages of a described run: which layers each holds, how many microbatches it keeps at once."""

from engine.training.step_time.described import TrainingRun
from engine.training.step_time.layer import Layer, layers


def stages(run: TrainingRun) -> list[list[Layer]]:
    """Layers of each stage in order, as even as they go; stage n stands on rank n mod pipeline."""
    split = run.split
    every = layers(run.config(), split.tensor, split.expert)
    count = split.pipeline * split.chunks
    ends = [round(n * len(every) / count) for n in range(count + 1)]
    return [every[a:b] for a, b in zip(ends, ends[1:], strict=False)]


def held(run: TrainingRun) -> list[float]:
    """The most microbatches through a whole rank whose activations each rank keeps: what 1F1B runs
    ahead, and its interleaved form (arXiv 2104.04473, section 2.2)."""
    p, v, m = run.split.pipeline, run.split.chunks, run.microbatches
    if v == 1:
        return [float(min(p - rank, m)) for rank in range(p)]
    return [min(m * v, 2 * (p - rank - 1) + (v - 1) * p + 1) / v for rank in range(p)]
