"""Memory of a training step on its fullest device: states, activations, gathered layers, logits.

Activations are what a layer keeps for its backward (Korthikanti et al., arXiv 2205.05198, section
4, generalised to any layer); states follow ZeRO (Rajbhandari et al., arXiv 1910.02054, section 5).
"""

from dataclasses import dataclass

from engine.training.step_time.described import TrainingRun
from engine.training.step_time.layer import Layer, outer_parameters
from engine.training.step_time.stages import held, stages

HALF, FULL = 2, 4  # bytes of a number
SCORES = 5  # bytes of a score that unfused attention keeps: softmax, its dropout and mask
LOGIT = 6  # bytes of a logit and of its 32-bit copy, whose place its gradient takes


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of the fullest device. `gathered`: whole parameters and gradients of layers at work."""

    weights: float
    gradients: float
    optimiser: float
    gathered: float
    activations: float
    logits: float

    @property
    def total(self) -> float:
        return (
            self.weights + self.gradients + self.optimiser + self.gathered + self.activations
            + self.logits
        )  # fmt: skip


def kept(run: TrainingRun, layer: Layer) -> float:
    """Bytes that a layer keeps of one microbatch on one device."""
    recipe, split = run.recipe, run.split
    tokens = recipe.microbatch * recipe.sequence / split.context
    along = split.tensor if split.sequence_parallel else 1
    if recipe.recompute == "full":
        return HALF * tokens * layer.hidden
    heads = (layer.heads + layer.kv_heads) * layer.query + layer.kv_heads * layer.value
    attended = layer.heads * layer.value
    inner = (3 if layer.gated else 2) * layer.widths
    if recipe.recompute == "half":
        first = inner / (3 if layer.gated else 2) * (2 if layer.gated else 1)
        return HALF * tokens * (layer.hidden / along + heads + attended + first)
    masks = 1.0 if recipe.dropout else 0.0  # two, of a byte a number
    whole = (2 * layer.norms / 2 + 2 + masks) * layer.hidden / along
    found = HALF * tokens * (whole + heads + attended + inner + layer.routed * layer.hidden)
    if recipe.attention == "unfused" and recipe.recompute == "none":
        found += SCORES * tokens * recipe.sequence * layer.heads
    return found


def states(run: TrainingRun, numbers: float) -> tuple[float, float, float]:
    """Bytes of (weights, gradients, optimiser) for that many parameters on a device."""
    shard, owners = run.split.shard, run.sharing
    grads = FULL if run.recipe.gradients == "float32" else HALF
    weights, gradients = HALF * numbers, grads * numbers
    optimiser = run.recipe.state_bytes * numbers
    if shard != "none":
        optimiser /= owners
    if shard in ("gradients", "parameters"):
        gradients /= owners
    if shard == "parameters":  # the optimiser's own copy is the only one that stays
        weights = 0.0 if run.recipe.state_bytes >= 12 else weights / owners
    return weights, gradients, optimiser


def memory(run: TrainingRun) -> Memory:
    """The fullest device's. Raises BadInput where the run does not divide."""
    found = [rank_memory(run, place, most) for place, most in enumerate(held(run))]
    return max(found, key=lambda each: each.total)


def rank_memory(run: TrainingRun, place: int, most: float) -> Memory:
    """A device's of pipeline rank `place` that keeps the activations of `most` microbatches."""
    config, split, recipe, every = run.config(), run.split, run.recipe, stages(run)
    tokens = recipe.microbatch * recipe.sequence / split.context
    embedding, head = (each / split.tensor for each in outer_parameters(config))
    grads = FULL if recipe.gradients == "float32" else HALF
    mine = [layer for stage in every[place :: split.pipeline] for layer in stage]
    last = place == split.pipeline - 1
    numbers = float(sum(layer.parameters for layer in mine))
    outer = (embedding if place == 0 else 0.0) + (head if last else 0.0)
    if last and place and config.tied:
        outer += embedding
    gathered = 0.0
    if split.shard == "parameters" and run.sharing > 1:
        largest = max((layer.parameters for layer in mine), default=0)
        gathered = 2 * HALF * largest + grads * largest + HALF * outer
    activations = most * sum(kept(run, layer) for layer in mine)
    logits = LOGIT * tokens * config.vocab / split.tensor if last else 0.0
    return Memory(*states(run, numbers + outer), gathered, activations, logits)
