"""What launched ranks do in the tests of pipelines, and the one process they are held to."""

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engine.distributed.rank import Rank
from engine.distributed.transport import Shape
from engine.models.config import ModelConfig, Rotary
from engine.models.reference import dense
from engine.training.losses.language import fresh_weights
from engine.training.pipeline.config import ended
from engine.training.plan.actions import Kind, Plan, read
from engine.training.stages.program import Duty
from engine.training.stages.ranks import follow
from engine.training.stages.stage import Stage, cross_entropy, language_stages, module_stage

ROWS, LENGTH = 2, 12
MODEL = ModelConfig(
    "LlamaForCausalLM", "llama", 48, 32, 8, 4, 2, 8, 64, 64, 1e-5, 8**-0.5, (0,) * 8, (False,) * 8,
    Rotary(8),
)  # fmt: skip
RATE = 0.1
WEIGHTS = cache(fresh_weights)


def microbatches(count: int, seed: int = 1) -> list[tuple[Tensor, Tensor]]:
    drawn = torch.Generator().manual_seed(seed)
    shape = (ROWS, LENGTH + 1)
    ids = [torch.randint(0, MODEL.vocab, shape, generator=drawn) for _ in range(count)]
    return [(each[:, :-1], each[:, 1:]) for each in ids]


def one_process(count: int) -> tuple[float, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(loss, gradients, weights after one step of gradient descent)."""
    weights = {name: w.clone().requires_grad_() for name, w in WEIGHTS(MODEL, 0).items()}
    losses = [cross_entropy(dense(MODEL, weights, a), b) for a, b in microbatches(count)]
    loss = torch.stack(losses).mean()
    loss.backward()
    gradients = {name: w.grad.numpy() for name, w in weights.items()}
    after = {name: (w.detach() - RATE * w.grad).numpy() for name, w in weights.items()}
    return loss.item(), gradients, after


def duty(plan: Plan, rank: int, peers: range, blocking: bool = False) -> Duty:
    """A rank's part, with plain gradient descent at its end."""
    stages = language_stages(
        MODEL, WEIGHTS(MODEL, 0), plan.stages, ROWS, LENGTH,
        lambda stage: plan.rank_of[stage] == rank,
    )  # fmt: skip

    def descend(stage: int, gradients: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, gradient in gradients.items():
                stages[stage].parameters[name].sub_(gradient, alpha=RATE)

    batch = microbatches(plan.microbatches)
    return Duty(plan, rank, peers, stages, batch, {Kind.STEP: descend}, blocking)


def follow_plans(rank: Rank, cases: list[dict[str, Any]]) -> None:
    """Every case whose ranks this one is among: gradients and weights under the case's name."""
    for case in cases:
        peers = range(case["first"], case["first"] + case["ranks"])
        if rank.rank not in peers:
            continue
        plan = ended(read(case["plan"]), reduce=False, update=True)
        mine = duty(plan, rank.rank - case["first"], peers, case.get("blocking", False))
        done = follow(rank, mine)
        for stage, gradients in done.gradients.items():
            for name, gradient in gradients.items():
                rank.record.put(f"{case['name']}/gradient/{name}", gradient.numpy())
                weight = mine.stages[stage].parameters[name].detach()
                rank.record.put(f"{case['name']}/weight/{name}", weight.numpy())
        losses = [done.losses[number] for number in sorted(done.losses)]
        rank.record.put(f"{case['name']}/losses", np.array(losses))
        held = mine.ledger.held
        rank.record.put(f"{case['name']}/held", np.array([held[kind] for kind in sorted(held)]))


def chain(width: int = 16) -> list[nn.Module]:
    """Four modules in float64; the second uses its weights twice."""
    torch.manual_seed(0)

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(width, width)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(torch.tanh(self.inner(x))) + x

    plain = [nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))]
    modules = [plain[0], Twice(), nn.Sequential(nn.Linear(width, width), nn.Tanh()), Twice()]
    return [module.double() for module in modules]


def chain_stages(modules: list[nn.Module], rows: int, width: int = 16) -> dict[int, Stage]:
    shape = Shape((rows, width), torch.float64)
    losses = [None] * (len(modules) - 1) + [nn.functional.mse_loss]
    pairs = enumerate(zip(modules, losses, strict=True))
    return {place: module_stage(module, shape, shape, loss) for place, (module, loss) in pairs}
