"""Pass times and bytes of a described run: any architecture, by the operator cost model.

Layers, constants and what runs beside passes are those that a step is predicted with
(`engine.training.step_time`), stage by stage. Pipeline ranks, chunks and microbatches are those of
the config around it.
"""

from typing import Literal

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.training.pipeline.stage_cost import Share, StageCost
from engine.training.step_time.bench import HALF
from engine.training.step_time.described import (
    Fields,
    OnDevices,
    PassRecipe,
    Recipe,
    Split,
    StageSplit,
    TrainingRun,
)
from engine.training.step_time.layer import model_flops
from engine.training.step_time.memory import rank_memory
from engine.training.step_time.step import Prepared


class Described(StageCost):
    """A described training run's passes; its embedding and head stand on the stages at the ends."""

    kind: Literal["described"] = "described"
    model: str = knob("llama-3.1-8b", "a public architecture; empty: `architecture` says all")
    architecture: Fields = knob(make=dict, doc="config.json's fields, over those of the model")
    cluster: OnDevices = knob(make=OnDevices, doc="what it runs on")
    split: StageSplit = knob(make=StageSplit, doc="how a stage is divided")
    recipe: PassRecipe = knob(make=PassRecipe, doc="what a pass computes")

    def run(self, ranks: int, chunks: int = 1) -> TrainingRun:
        """The run that this is a pipeline of, of one microbatch for each replica."""
        return TrainingRun(
            model=self.model,
            architecture=self.architecture,
            cluster=self.cluster,
            split=Split(**dict(self.split), pipeline=ranks, chunks=chunks),
            recipe=Recipe(**dict(self.recipe)),
        )

    def replicas(self, ranks: int) -> int:
        return self.run(ranks).replicas

    @property
    def devices(self) -> tuple[int, int]:
        return self.split.context, self.split.tensor

    def share(self, ranks: int, chunks: int) -> Share:
        run = self.run(ranks, chunks)
        config, recipe = run.config(), self.recipe
        if config.layers < ranks * chunks:
            raise BadInput(
                f"passes: {config.layers} layers on {ranks} ranks with {chunks} chunks each: a "
                "stage would have none; take fewer"
            )
        prepared = Prepared(run)
        seconds, summed, update = prepared.by_stage()
        forward, backward_input, backward_weight = (seconds.sum(1) / ranks).tolist()
        here = rank_memory(run, 0, 1.0)  # which keeps the most microbatches
        tokens = recipe.microbatch * recipe.sequence
        on_each = ranks * self.split.context * self.split.tensor
        flops = model_flops(config, recipe.sequence, tokens) / on_each
        return Share(
            forward=forward,
            backward_input=backward_input,
            backward_weight=backward_weight,
            stages=tuple(map(tuple, seconds.tolist())),
            reduce=summed,
            update=update,
            boundary=HALF * tokens * config.hidden,
            sent=chunks * prepared.sent() if ranks > 1 else 0.0,
            awaited=True,
            activations=here.activations,
            weights=here.weights + here.gathered,
            gradients=here.gradients,
            optimiser=here.optimiser,
            forward_flops=flops / 3,
            backward_flops=flops * 2 / 3,
        )
