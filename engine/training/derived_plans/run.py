"""The driver of derived plans: derive, compare with the hand-written plan, run the shards, train.

Emits a mark for each kind of weight's split, a span for each rank's work, levels for bytes of each
rank, weights split otherwise than by hand, errors against the dense forward and losses; and curves.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from engine.core.clock import WallClock
from engine.core.errors import BadInput
from engine.core.events import Level, Mark, Span
from engine.core.plot import BOUND, Plot
from engine.core.run import Live
from engine.kernels.threads import torch_threads
from engine.models.config import ModelConfig
from engine.models.loading.find import find
from engine.models.loading.random_weights import RandomWeights
from engine.models.reference import dense
from engine.training.derived_plans.config import PUBLIC, ShardRulesConfig
from engine.training.derived_plans.pipeline import (
    Example,
    Logits,
    Pipeline,
    fit,
    language_modelling,
    preferences,
)
from engine.training.parallel.parallelism import Phase, in_turns, unseen
from engine.training.parallel.tensor.model import ShardedStage
from engine.training.shard_rules.plan import Plan, bytes_of_rank, hand_plan
from engine.training.shard_rules.rules import derive

PLAN, OTHERWISE, ERROR, LOSS, BYTES = (
    "plan", "split otherwise than by hand", "error", "loss", "weight bytes",
)  # fmt: skip
WEIGHTS, LOSSES = "weights of a rank", Plot("loss", "step", "loss")
LOUD = 4.0  # random matrices are scaled up, so that attention and routing are not all alike


def run(config: ShardRulesConfig, live: Live) -> None:
    """A plan, its shards at work, and a few steps of training."""
    with torch_threads(1):
        _run(config, live)


def _run(config: ShardRulesConfig, live: Live) -> None:
    clock, model = WallClock(), config.model()
    public = find(PUBLIC[config.family])
    held_by = Plot(WEIGHTS, "ranks", f"bytes, {public.name}", log_x=True, log_y=True)
    lanes = [f"rank {rank}" for rank in range(config.ranks)]
    live.open(
        config,
        clock,
        plots=[held_by, LOSSES],
        question="Do ranks hold less, and learn the same?",
        lanes=lanes,
    )
    plan = derive(model, config.ranks, config.rules)
    for module, split in _told(plan).items():
        live.emit(Mark(clock.now(), PLAN, module, split))
    live.emit(Level(clock.now(), PLAN, OTHERWISE, float(otherwise(model, config))))
    held = float(bytes_of_rank(model, plan, config.ranks, 4))
    for lane in lanes:
        live.emit(Level(clock.now(), lane, BYTES, held))

    @contextmanager
    def phase(rank: int, name: str) -> Iterator[None]:
        start = clock.now()
        yield
        live.emit(Span(clock.now(), lanes[rank], name, start))

    try:
        for name, (found, true) in held_to_dense(config, plan, phase).items():
            live.error(clock.now(), name, found, true)
        for name, losses in trained(config, plan).items():
            for loss in losses:
                live.emit(Level(clock.now(), name, LOSS, loss))
            live.curve(clock.now(), LOSSES, name, list(enumerate(losses)))
    except (RuntimeError, BadInput) as fault:
        # A wrong plan gives matrices that do not fit: that is what there is to see.
        live.emit(Mark(clock.now(), PLAN, "does not run", str(fault).splitlines()[0]))
    for name, points in _weights(config, public.config).items():
        live.curve(clock.now(), held_by, name, points)


def otherwise(model: ModelConfig, config: ShardRulesConfig) -> int:
    """How many weights the rules split otherwise than the hand-written plan."""
    plan, hand = derive(model, config.ranks, config.rules), hand_plan(model)
    return sum(plan[name] != split for name, split in hand.items())


def _told(plan: Plan) -> dict[str, str]:
    """The split of each kind of module, those of vectors left out."""
    found: dict[str, str] = {}
    for name, split in plan.items():
        *_, module, last = name.split(".")
        if last == "weight" and "norm" not in module and not module.startswith("ln_"):
            found[module] = split
    return found


def leaves(model: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Random weights that want gradients, under their Hugging Face names."""
    return {
        name: (tensor * (LOUD if tensor.ndim > 1 else 1.0)).requires_grad_()
        for name, tensor in RandomWeights(model, seed).items()
    }


def sharded(
    model: ModelConfig, weights: Mapping[str, Tensor], plan: Plan, ranks: int,
    phase: Phase = unseen,
) -> Logits:  # fmt: skip
    """The mesh's tensor-parallel forward over views of these weights, its ranks taking turns."""
    parallel = in_turns(ranks, phase)
    stage = ShardedStage(model, weights, parallel, plan=plan)

    def logits(ids_BT: Tensor) -> Tensor:
        parallel.spans = [[range(ids_BT.shape[1])]]
        made: Tensor = stage(ids_BT)
        return made

    return logits


def held_to_dense(
    config: ShardRulesConfig, plan: Plan, phase: Phase
) -> dict[str, tuple[list[Tensor], list[Tensor]]]:
    """Logits and the gradients of all weights, of the shards and of the dense forward."""
    model = config.model()
    weights = leaves(model, config.seed)
    generator = torch.Generator().manual_seed(config.seed)
    ids_BT = torch.randint(model.vocab, (config.rows, config.tokens), generator=generator)
    slope = torch.randn(config.rows, config.tokens, model.vocab, generator=generator)
    found = []
    for forward in (
        sharded(model, weights, plan, config.ranks, phase),
        lambda ids: dense(model, weights, ids),
    ):
        logits_BTV = forward(ids_BT)
        slopes = torch.autograd.grad(
            (logits_BTV * slope).mean(), list(weights.values()), materialize_grads=True
        )
        found.append((logits_BTV.detach(), list(slopes)))
    (ours, our_grads), (true, true_grads) = found
    return {"logits": ([ours], [true]), "gradients": (our_grads, true_grads)}


def trained(config: ShardRulesConfig, plan: Plan) -> dict[str, list[float]]:
    """Losses of the pipeline over shards and in one process, from the same weights."""
    model = config.model()
    pipelines = {"language_modelling": language_modelling, "preferences": preferences}
    pipeline: Pipeline = pipelines[config.pipeline]()
    generator = torch.Generator().manual_seed(config.seed + 1)
    drawn = torch.randint(model.vocab, (config.rows, 2, config.tokens), generator=generator)
    examples: list[Example] = drawn.tolist()

    def split(weights: Mapping[str, Tensor]) -> Logits:
        return sharded(model, weights, plan, config.ranks)

    def whole(weights: Mapping[str, Tensor]) -> Logits:
        return lambda ids_BT: dense(model, weights, ids_BT)

    found = {}
    for name, make in (("sharded", split), ("one process", whole)):
        weights = leaves(model, config.seed)
        found[name], _ = fit(
            pipeline, partial(make, weights), weights, examples, config.steps, config.rate
        )
    return found


def _weights(config: ShardRulesConfig, public: ModelConfig) -> dict[str, list[tuple[int, float]]]:
    """Bytes of a rank of the public model, 16-bit, over the number of ranks."""
    counts = [1, 2, 4, 8]
    held = [(n, bytes_of_rank(public, derive(public, n, config.rules), n)) for n in counts]
    even = [(n, held[0][1] / n) for n in counts]
    return {"by the rules": [*held], f"even share{BOUND}": even}
