"""Module policies (Duo-LLM, arXiv 2410.10846): which feed-forward of each layer a token takes, of a
model that has a small and a big one in every layer.

A policy decides by a token's position or by what the layer is given of it, never by who else is in
the batch, so that a request that starts anew takes the same ones again.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Literal

import numpy as np

from engine.core.config import Policy, knob
from engine.core.errors import BadInput
from engine.models.config import ModelConfig
from engine.models.duo.shape import LETTERS, Duo, DuoFault


class Modules(Policy):
    """Who says which feed-forward a token takes."""

    folder = "engine.inference.policies.modules"
    fault: DuoFault = knob(
        "none", "What goes wrong: in the last layer the small one is taken for the big one, the "
        "router reads another token or means the contrary, what is left out is computed all the "
        "same, or a search gives each token what was best for the one before it", group="faults",
    )  # fmt: skip

    def of(self, model: ModelConfig) -> ModelConfig:
        """The model with this policy. Raises BadInput where it has one feed-forward a layer."""
        if model.duo is None:
            raise BadInput(
                f"modules {self.kind}: {model.architecture} has one feed-forward in each layer; "
                "leave modules at as_trained, or take model=duo/duo-0"
            )
        return replace(model, duo=replace(self.chosen(model.duo, model), fault=self.fault))

    @abstractmethod
    def chosen(self, duo: Duo, model: ModelConfig) -> Duo:
        """With what this policy says. Raises BadInput."""


class OwnRouter(Modules):
    """The model's router, with as many big ones as its checkpoint says."""

    kind: Literal["as_trained"] = "as_trained"

    def of(self, model: ModelConfig) -> ModelConfig:
        return model if model.duo is None else super().of(model)

    def chosen(self, duo: Duo, model: ModelConfig) -> Duo:
        return duo


class ByRouter(Modules):
    """The model's router, with as many big ones as is said here."""

    kind: Literal["router"] = "router"
    big: int = knob(
        1,
        "Layers in which a token takes the big one",
        low=0,
        high=64,
        unit="layers",
        called="Layers with the big module",
    )

    def chosen(self, duo: Duo, model: ModelConfig) -> Duo:
        return replace(duo, big=within(self.big, model), routes=())


class ByPosition(Modules):
    """Routes written down: the same for every text."""

    kind: Literal["routes"] = "routes"
    routes: str = knob(
        "BBBB", "For each position a letter for each layer, again from the first behind the "
        "last: B big, s small, - neither"
    )  # fmt: skip

    def chosen(self, duo: Duo, model: ModelConfig) -> Duo:
        found = tuple(self.routes.split())
        for route in found or ("",):
            if len(route) != model.layers or set(route) - set(LETTERS):
                raise BadInput(
                    f"modules.routes: {route[:24]!r} is no route; write {model.layers} letters for "
                    "the layers, each B, s or -"
                )
        return replace(duo, routes=found)


class Drawn(Modules):
    """Big ones in layers drawn for each position, as many for each."""

    kind: Literal["drawn"] = "drawn"
    big: int = knob(
        1,
        "Layers in which a token takes the big one",
        low=0,
        high=64,
        unit="layers",
        called="Layers with the big module",
    )
    seed: int = knob(0, "Seed of the draw", low=0, high=2**31)

    def chosen(self, duo: Duo, model: ModelConfig) -> Duo:
        chance = np.random.default_rng(self.seed)
        size = model.max_positions, model.layers
        big_PL = chance.random(size).argsort(1) < within(self.big, model)
        return replace(duo, routes=tuple("".join(row) for row in np.where(big_PL, "B", "s")))


def within(big: int, model: ModelConfig) -> int:
    """A number of big ones. Raises BadInput for more than there are layers."""
    if big > model.layers:
        raise BadInput(f"modules.big: {big} of {model.layers} layers; take no more than there are")
    return big
