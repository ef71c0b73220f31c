"""Carrying out a plan on real ranks of this machine: a small language model, one step timed.

Ranks are processes that talk over gloo. Where passes are paced each takes at least what the config
says a pass takes: it is computed, and the rest is slept, as a stand-in for a device of its own.
"""

from typing import TYPE_CHECKING

from engine.core.clock import Clock, WallClock
from engine.core.config import knob, to_dict
from engine.core.errors import BadInput
from engine.core.run import Live
from engine.distributed.launch import launch
from engine.distributed.merge import merged
from engine.distributed.rank import Work
from engine.models.config import ModelConfig, Rotary
from engine.training.pipeline.execution import Carried, Execution
from engine.training.pipeline.measured import gradient_error, measured_costs
from engine.training.plan.times import timed
from engine.training.plan.transfers import lower

if TYPE_CHECKING:
    from engine.training.pipeline.config import PipelineConfig, Worked

MOST = 16  # processes of one run
MOST_MICROBATCHES = 256
COMPARED = 4_000_000  # parameters of a model whose gradients are held to one process's
MODEL, RUN = "model of the ranks", "run of the ranks"


class OnRanks(Execution):
    """The model they train, and how."""

    paced: bool = knob(
        True, "each pass takes at least as long as `passes` says, the rest of it slept (a stand-in "
        "for a device); else as long as this machine's cores take", group=RUN,
    )  # fmt: skip
    layers: int = knob(8, "layers of the model", low=1, high=128, group=MODEL)
    hidden: int = knob(64, "hidden size, a multiple of 16", low=16, high=4096, group=MODEL)
    vocabulary: int = knob(256, "entries of the vocabulary", low=2, high=65536, group=MODEL)
    sequence: int = knob(32, "tokens of a sequence", low=1, high=4096, unit="tokens", group=MODEL)
    rows: int = knob(2, "sequences of a microbatch", low=1, high=256, group=MODEL)
    seed: int = knob(0, "of weights and tokens", low=0, high=2**31 - 1, group=MODEL)
    limit: float = knob(120.0, "the run is ended after", low=1.0, high=3600.0, unit="s", group=RUN)
    port: int = knob(0, "where ranks meet on loopback; 0: any free port", low=0, high=65535,
                     group=RUN)  # fmt: skip
    stall: float = knob(
        0.0, "slept between a message and the pass that it is for, which the clock is not told",
        low=0.0, high=1.0, unit="s", group=RUN,
    )  # fmt: skip
    swapped: int = knob(
        -1, "microbatch whose place another one takes, which is wrong (-1: none)", low=-1,
        high=1023, group=RUN,
    )  # fmt: skip

    @property
    def is_real(self) -> bool:
        return True

    def clock(self) -> Clock:
        return WallClock()

    def model(self) -> ModelConfig:
        """A Llama of that size. Raises BadInput where heads of 16 do not fit."""
        if self.hidden % 16:
            raise BadInput(f"hidden size {self.hidden}: heads have 16; take a multiple of 16")
        heads = self.hidden // 16
        return ModelConfig(
            architecture="LlamaForCausalLM", family="llama", vocab=self.vocabulary,
            hidden=self.hidden, layers=self.layers, heads=heads, kv_heads=heads, head_dim=16,
            width=2 * self.hidden, max_positions=self.sequence, norm_eps=1e-5,
            attention_scale=0.25, windows=(0,) * self.layers,
            expert_layers=(False,) * self.layers, rotary=Rotary(16),
        )  # fmt: skip

    def carry_out(self, config: "PipelineConfig", made: "Worked", live: Live) -> Carried | None:
        self._fits(config, made)
        self.model()
        plan = made.plan
        if not plan.lowered:
            times = timed(plan, made.costs)
            plan = lower(plan, times.start, times.stop)
        passes = made.costs.passes.tolist() if self.paced else None
        given = {"config": to_dict(config), "plan": str(plan), "passes": passes}
        records = launch(
            _work(), config.ranks, given, limit=self.limit, port=self.port,
            poll=lambda: live.poll(0.0),
        )  # fmt: skip
        error = None
        if any(record.arrays for record in records):
            error = gradient_error(self, config.microbatches, records)
        costs = measured_costs(made.plan, records, config.together)
        return Carried(merged(records), costs, error)

    def _fits(self, config: "PipelineConfig", made: "Worked") -> None:
        if config.ranks > MOST or config.microbatches > MOST_MICROBATCHES:
            raise BadInput(
                f"ranks {config.ranks}, microbatches {config.microbatches}: real ranks on one "
                f"machine are for {MOST} and {MOST_MICROBATCHES} at most; take execution=modelled"
            )
        if made.plan.stages > self.layers:
            raise BadInput(
                f"execution: {self.layers} layers for {made.plan.stages} stages, one at least "
                f"each; set execution.layers={made.plan.stages}"
            )


def _work() -> Work:
    from engine.training.pipeline.rank_work import work  # it reads the config, which names this one

    return work
