"""Our 1F1B beside `torch.distributed.pipelining`'s: the same model, ranks and microbatches.

Steps take turns within one launch, in the other order every other round; each is timed from a
barrier to a barrier. Forward and backward alone: no optimiser on either side, nor memory counted.
"""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from engine.distributed.launch import launch
from engine.distributed.rank import Rank
from engine.training.losses.language import fresh_weights
from engine.training.pipeline.executors.real import Real
from engine.training.pipeline.tiny_model import TinyModel
from engine.training.plan.actions import Plan, read
from engine.training.plan.schedule import Pipe
from engine.training.plan.schedules.one_forward_one_backward import OneForwardOneBackward
from engine.training.plan.times import Costs, timed
from engine.training.plan.transfers import lower
from engine.training.stages.memory import Ledger
from engine.training.stages.program import Duty
from engine.training.stages.ranks import follow
from engine.training.stages.stage import Stage, cross_entropy, language_stages

HOLDS_TO = 1.10  # of torch's time
SIZES = {False: {"hidden": 192, "sequence": 64}, True: {"hidden": 256, "sequence": 128}}
MICROBATCHES, WARM = 8, 2
NAMES = ("ours", "theirs", "counted")  # the last one ours, with memory counted as it goes


def compare(full: bool, ranks: int = 2) -> dict[str, Any]:
    """Seconds of a step: ours, torch's, each round; and how far their gradients are apart."""
    tiny = Real(layers=8, rows=2, **SIZES[full]).tiny()
    rounds = 12 if full else 6
    made = OneForwardOneBackward().plan(Pipe(ranks, MICROBATCHES))
    times = timed(made, Costs.even(made, backward_input=1.0))
    plan = lower(made, times.start, times.stop)
    given = {"tiny": tiny, "plan": str(plan), "rounds": rounds + WARM}
    records = launch(_work, ranks, given, limit=600)
    # Of each round: seconds between barriers, and processor seconds of all ranks.
    (ours, our_cpu), (theirs, their_cpu), (counted, _) = (
        (records[0].array(name)[WARM:, 0], sum(r.array(name)[WARM:, 1] for r in records))
        for name in NAMES
    )
    ratios = ours / theirs
    return {
        "name": "1f1b beside torch's",
        "what": f"a step of {ranks} gloo ranks, {MICROBATCHES} microbatches, "
        f"hidden {tiny.hidden}, {tiny.sequence} tokens",
        "seconds": float(np.median(ours)),
        "slowest": float(ours.max()),
        "their_seconds": float(np.median(theirs)),
        "ratio": float(np.median(ratios)),
        "cpu_ratio": float(np.median(our_cpu / their_cpu)),
        "counted_ratio": float(np.median(counted / theirs)),
        "ratios": [float(each) for each in ratios],
        "limit_ratio": HOLDS_TO,
        "gradient_error": max(float(record.array("error")) for record in records),
    }


def _work(rank: Rank, given: dict[str, Any]) -> None:
    tiny, plan = given["tiny"], read(given["plan"])
    model = tiny.config()
    weights = fresh_weights(model, tiny.seed)
    own = language_stages(
        model, weights, plan.stages, tiny.rows, tiny.sequence, lambda s: s == rank.rank
    )
    batch = tiny.microbatches(plan.microbatches)
    theirs = _Theirs(rank, plan, tiny, batch)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in NAMES}
    error = 0.0
    for turn in range(given["rounds"]):
        for name in NAMES if turn % 2 else NAMES[::-1]:
            rank.transport.barrier()
            start, busy = rank.now(), time.process_time()
            if name == "theirs":
                theirs.step()
            else:
                ledger = Ledger(counting=name == "counted")
                duty = Duty(plan, rank.rank, range(rank.ranks), own, batch, ledger=ledger)
                done = follow(rank, duty)
            busy = time.process_time() - busy
            rank.transport.barrier()
            found[name].append((rank.now() - start, busy))
        rank.record.events.clear()
        error = max(error, theirs.apart(done.gradients[rank.rank]))
    for name, seconds in found.items():
        rank.record.put(name, np.array(seconds))
    rank.record.put("error", np.array(error))


class _Module(nn.Module):
    """A stage as torch wants it: its weights are the module's parameters."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        assert isinstance(stage.parameters, dict)
        self.stage, self.weights = stage, stage.parameters
        for name, weight in self.weights.items():
            # In place of the weight that the stage's functions read by that name.
            self.weights[name] = nn.Parameter(weight.detach())
            self.register_parameter(name.replace(".", "_"), self.weights[name])

    def forward(self, x: Tensor) -> Tensor:
        return self.stage.forward(self.stage.begin(x) if self.stage.begin else x)


class _Theirs:
    """The same stage under torch's schedule, over a gloo group of torch's own."""

    def __init__(
        self, rank: Rank, plan: Plan, tiny: TinyModel, batch: list[tuple[Tensor, Tensor]]
    ) -> None:
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B

        store = dist.PrefixStore("pipelining", rank.meeting.store)
        dist.init_process_group("gloo", store=store, rank=rank.rank, world_size=rank.ranks)
        model = tiny.config()
        weights = fresh_weights(model, tiny.seed)
        stages = language_stages(
            model, weights, plan.stages, tiny.rows, tiny.sequence, lambda s: s == rank.rank
        )
        self.module = _Module(stages[rank.rank])
        stage = PipelineStage(self.module, rank.rank, rank.ranks, torch.device("cpu"))
        self.schedule = Schedule1F1B(stage, len(batch), loss_fn=cross_entropy)
        self.tokens, self.target = (torch.cat(each) for each in zip(*batch, strict=True))
        self.first, self.last = rank.rank == 0, rank.rank == rank.ranks - 1

    def step(self) -> None:
        self.module.zero_grad(set_to_none=True)
        given = (self.tokens,) if self.first else ()
        target = self.target if self.last else None
        self.schedule.step(*given, target=target, return_outputs=False)

    def apart(self, ours: Mapping[str, Tensor]) -> float:
        """The largest difference of a gradient, as a share of its largest number."""
        errors = []
        for name, weight in self.module.weights.items():
            assert weight.grad is not None
            errors.append(float((ours[name] - weight.grad).abs().max() / weight.grad.abs().max()))
        return max(errors)
