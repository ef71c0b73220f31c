"""Parallel streams (ParScale, arXiv 2505.10475): how many passes each token gets at once.

Streams are rows of the same batch and pages of the same cache: a request's page holds the keys and
values of all its streams, so that who shares, forks or swaps a page does so for each of them. What
differs from stream to stream is never shared between them: behind other prefixes the same prompt
has other keys from the second layer on.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Literal

from engine.core.config import Policy, knob
from engine.core.errors import BadInput
from engine.models import config as models
from engine.models.config import ModelConfig, StreamFault


class Streams(Policy):
    """How many passes a token gets, and what tells them apart."""

    folder = "engine.inference.policies.streams"
    fault: StreamFault = knob(
        "none", "What goes wrong: all streams behind the first one's prefix, all in the first "
        "one's pages, mixed in equal shares, in shares that sum to more than 1, or added up; on a "
        "described device, one pass after another, or each stream with weights of its own",
        group="faults",
    )  # fmt: skip

    @abstractmethod
    def of(self, model: ModelConfig, trained: bool) -> ModelConfig:
        """The model with its streams; `trained`: its weights are given. Raises BadInput."""


class AsTrained(Streams):
    """Those that the checkpoint has: one, of most."""

    kind: Literal["as_trained"] = "as_trained"

    def of(self, model: ModelConfig, trained: bool) -> ModelConfig:
        if self.fault == "none" or model.streams is None:
            return model
        return replace(model, streams=replace(model.streams, fault=self.fault))


class Parallel(Streams):
    """So many, whatever the model: of described devices and random weights."""

    kind: Literal["parallel"] = "parallel"
    count: int = knob(4, "Streams", low=1, high=64)
    prefix: int = knob(
        48, "Tokens of each one's prefix in every layer", low=0, high=4096, unit="tokens"
    )

    def of(self, model: ModelConfig, trained: bool) -> ModelConfig:
        asked = models.Streams(self.count, self.prefix, fault=self.fault)
        if trained and (self.count > 1 or self.prefix) and not _same(model.streams, asked):
            raise BadInput(
                f"streams: the checkpoint is not trained for {self.count} behind prefixes of "
                f"{self.prefix} tokens; leave streams at as_trained, or take a model without "
                "weights"
            )
        if model.latent is not None or any(model.windows) or model.paths:
            raise BadInput(
                f"streams: {model.architecture} caches latents, has windows or paths of its own; "
                "prefixes fit none of them"
            )
        return replace(model, streams=asked)


def _same(there: models.Streams | None, asked: models.Streams) -> bool:
    return there is not None and (there.count, there.prefix) == (asked.count, asked.prefix)
