"""Model: the transformer the engine runs, a batch over paged memory in, logits out.

Shape letters: T new tokens, C hidden, R wanted logits, V vocabulary.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.errors import BadInput
from engine.kernels.integer_matmul.linears import KINDS, told
from engine.models import fused_step, parallel_streams
from engine.models.attention import Attention, Pass, Turns
from engine.models.batch import Batch
from engine.models.config import ModelConfig
from engine.models.duo.routes import Routes
from engine.models.feedforward import (
    Beside,
    DuoFeedForward,
    FeedForward,
    InputsOfLayers,
    LayerEnd,
    Mixture,
)
from engine.models.gathered import Cast, Gathered
from engine.models.kv import CacheSpec, PagedKV, cache_spec
from engine.models.latent_attention import LatentAttention
from engine.models.layers import finished
from engine.models.norm import Norm
from engine.models.ops import Linear, Ops, ops_for
from engine.models.parameters import layer_parameters, outer_parameters
from engine.models.recurrent_layer import Recurrent
from engine.models.rotary import cos_sin, frequencies
from engine.models.view_attention import ViewAttention

DTYPES = ("float32", "bfloat16", "float16", "float64")


class Fused(Protocol):
    """A whole forward pass in one call."""

    def forward(self, batch: Batch, kv: PagedKV) -> Tensor:
        """logits_RV, equal to the general path's within rounding."""

    def hidden(self, batch: Batch, kv: PagedKV, layers: int) -> Tensor:
        """x_TC after the first `layers` layers."""

    def decode_loop(self, batch: Batch, kv: PagedKV, onward: fused_step.Onward) -> None:
        """A pass, and the decodes that follow it, each row fed with the token it just took."""


class Block:
    """One layer: attention, then feed-forward or experts, each behind a norm and added back."""

    def __init__(self, config: ModelConfig, layer: int, weights: Gathered) -> None:
        before = Norm if config.pre_norm else _none
        self.attention_norm = before(config, weights, "attention_norm")
        mixer = Recurrent if config.keeps_state(layer) else Attention
        self.attention = (LatentAttention if config.latent else mixer)(config, layer, weights)
        self.residual_scale = config.residual_scale
        feed = Mixture if config.expert_layers[layer] else FeedForward
        self.mlp = (Beside if config.fed_twice else feed)(config, weights)
        self.mlp_norm = (_none if config.fed_twice else before)(config, weights, "mlp_norm")
        self.duo = DuoFeedForward(config, layer, weights) if config.duo is not None else None
        special = config.layer_scale or config.layer_inputs is not None
        self.end = LayerEnd(config, layer, weights) if special else None
        self.post: tuple[Norm, Norm] | None = None
        if config.sandwich:
            names = ("attention_post_norm", "mlp_post_norm")
            self.post = (Norm(config, weights, names[0]), Norm(config, weights, names[1]))

    def __call__(self, x_TC: Tensor, here: Pass, cache: dict[str, Tensor]) -> Tensor:
        """x_TC after this layer."""
        y_TC = self.attention(self.attention_norm(x_TC), here, cache)
        x_TC = self.add(x_TC, self.post[0](y_TC) if self.post else y_TC)
        y_TC = self.mlp_norm(x_TC)
        y_TC = self.duo(y_TC, here.routes) if self.duo and here.routes else self.mlp(y_TC)
        x_TC = self.add(x_TC, self.post[1](y_TC) if self.post else y_TC)
        return self.end(x_TC, here.inputs_LTE) if self.end else x_TC

    def add(self, x_TC: Tensor, y_TC: Tensor) -> Tensor:
        """x_TC with what a half of the layer found."""
        return x_TC + (y_TC if self.residual_scale == 1.0 else y_TC * self.residual_scale)


class HalfBlock:
    """A layer that is one half alone (Nemotron-H): a norm, then attention, a state or a
    feed-forward, added back."""

    def __init__(self, config: ModelConfig, layer: int, weights: Gathered) -> None:
        mixes, routed = config.mixes(layer), config.expert_layers[layer]
        self.norm = Norm(config, weights, "attention_norm" if mixes else "mlp_norm")
        self.mixer: Attention | Recurrent | None = None
        if mixes:
            kind = Recurrent if config.keeps_state(layer) else Attention
            self.mixer = kind(config, layer, weights)
        else:
            self.feed = Mixture(config, weights) if routed else FeedForward(config, weights)

    def __call__(self, x_TC: Tensor, here: Pass, cache: dict[str, Tensor]) -> Tensor:
        """x_TC after this layer."""
        y_TC = self.norm(x_TC)
        return x_TC + (self.mixer(y_TC, here, cache) if self.mixer else self.feed(y_TC))


def _none(*_: object) -> Callable[[Tensor], Tensor]:
    """No norm at all."""
    return lambda x_TC: x_TC


class Model:
    """A model ready to run.

    `weights` is where they came from, by Hugging Face name: a checkpoint reads them again when
    asked (the model itself holds them once, laid out for its kernels). `plain` keeps to torch
    operations; `ops`, if given, are computed with in place of the device's own. `activations`
    "int8": quantised as they come for weights in codes of 2, 4 or 8 bits, multiplied as integers.
    Raises BadInput where no weight is such. `exact`, which may be set, computes recurrent states
    and indices token by token: a token's bits are then the same in any batch, as they are of other
    layers anyway.
    """

    exact = False

    def __init__(
        self,
        config: ModelConfig,
        source: Mapping[str, Tensor],
        dtype: str = "float32",
        *,
        device: str = "cpu",
        plain: bool = False,
        ops: Ops | None = None,
        activations: str = "auto",
    ) -> None:
        if dtype not in DTYPES:
            raise BadInput(f"dtype {dtype!r}: supported are {', '.join(DTYPES)}")
        if activations not in KINDS:
            raise BadInput(f"activations {activations!r}: supported are {', '.join(KINDS)}")
        self.config = config
        self.weights = source
        self.dtype = getattr(torch, dtype)
        self.device = device
        self.spec: CacheSpec = cache_spec(config, dtype)
        kernels = dtype in ("float32", "bfloat16")
        self.compiled = not (plain or ops) and device == "cpu" and kernels
        rotary = config.rotary
        kinds = {"main": rotary, "local": config.local_rotary}
        self.rotaries = {
            kind: (each, frequencies(each).to(device)) for kind, each in kinds.items() if each
        }
        self.fused: Fused | None = None
        self.taken: list[Tensor] = []  # of two feed-forwards, by each token of a pass, by layer
        self.mixing: dict[str, Tensor] = {}  # of parallel streams, by role
        in_codes, integers = bool(getattr(source, "holds_codes", False)), activations == "int8"
        if integers and not self.compiled:
            raise BadInput("activations int8: on a processor in float32 or bfloat16; use auto")
        formats: Counter[str]
        if self.compiled and fused_step.fits(config, self.dtype, in_codes):
            codes = getattr(source, "codes", None) if in_codes else None
            self.fused = fused_step.Fused(config, Cast(source, self.dtype), codes, integers)
            formats = self.fused.formats
        else:
            self.ops = ops or ops_for("cpu" if plain else device, self.compiled, integers)
            self._assemble(self.ops)
            formats = Counter() if self.ops.codes is None else self.ops.codes.formats
        # Of those that are quantised as they come, with which weights.
        self.activations = told(formats) if integers else ""

    def _assemble(self, ops: Ops) -> None:
        """The general path's parts."""
        config, like = self.config, (self.weights, ops, self.dtype, self.device)
        outer = Gathered(outer_parameters(config), *like)
        self.embedding_VC = outer.take("embedding")
        self.positions_PC = outer.take("positions") if config.rotary is None else None
        self.norm = Norm(config, outer, "norm")
        tied = ops.linear(self.embedding_VC, None) if config.tied else None
        self.head: Linear = tied or outer.linear("head")
        layers = [Gathered(layer_parameters(config, each), *like) for each in range(config.layers)]
        made = HalfBlock if config.halves else Block
        self.blocks: list[Block | HalfBlock] = [made(config, *each) for each in enumerate(layers)]
        self.inputs = InputsOfLayers(config, outer) if config.layer_inputs else None
        mixing = ("mix_in", "mix_in.bias", "mix_out", "mix_out.bias")
        self.mixing = {role: outer.take(role) for role in mixing if role in outer}
        own = {"k": "prefix_key", "v": "prefix_value"}  # of parallel streams, by what is cached
        self.prefixes = [
            {name: each.take(role) for name, role in own.items() if role in each} for each in layers
        ]

    def forward(self, batch: Batch, kv: PagedKV) -> Tensor:
        """logits_RV in float32 at `batch.logits_at_R`; new keys and values are written to `kv`."""
        if self.fused is not None:  # of no torch operation: there is nothing to infer
            return self.fused.forward(batch, kv)
        return self._forward(batch, kv)

    @torch.inference_mode()
    def _forward(self, batch: Batch, kv: PagedKV) -> Tensor:
        batch = self.rows(batch, kv)
        x_TC = self.hidden(batch, kv, self.config.layers)
        x_RC = self.norm(x_TC[self._tensor(batch.logits_at_R).long()])
        return finished(self.config, self.head(self.mixed(x_RC)).float())

    @torch.inference_mode()
    def hidden(self, batch: Batch, kv: PagedKV, layers: int) -> Tensor:
        """x_TC after the first `layers` layers, which write their keys and values to `kv`.

        `batch` is as `rows` gives it.
        """
        if self.fused is not None:
            return self.fused.hidden(batch, kv, layers)
        here = self.shared(batch)
        x_TC = self.embed(batch)
        for block, cache in zip(self.blocks[:layers], self.pages(kv), strict=False):
            x_TC = block(x_TC, here, cache)
        return x_TC

    def rows(self, batch: Batch, kv: PagedKV) -> Batch:
        """The batch as layers compute it: of parallel streams a row of each."""
        streams = self.config.streams
        return batch if streams is None else parallel_streams.rows_of(batch, kv, streams)

    def pages(self, kv: PagedKV) -> list[dict[str, Tensor]]:
        """The cache as layers read it; prefixes of parallel streams are written into it once."""
        streams = self.config.streams
        if streams is None:
            held = kv.layers
            return [held[self.config.source(layer)] for layer in range(len(held))]
        pages = parallel_streams.pages_of(kv, streams)
        if not kv.filled:
            parallel_streams.write_prefixes(self.prefixes, pages, kv, streams)
            kv.filled = True
        return pages

    def mixed(self, x_RC: Tensor) -> Tensor:
        """Rows behind the last norm, those of parallel streams made one."""
        return parallel_streams.mixed(self.config, self.mixing, x_RC)

    def shared(self, batch: Batch) -> Pass:
        """What all layers of the batch's forward pass share."""
        turns = self._turns(batch, self._tensor(batch.positions_T))
        views = None
        if batch.views is not None:
            views = ViewAttention(self.config, batch, batch.views, self.device)
        paths_T = None if batch.paths_T is None else self._tensor(batch.paths_T).long()
        inputs_LTE = None
        if self.config.layer_inputs is not None and self.inputs is not None:
            inputs_LTE = self.inputs(self._tensor(batch.tokens_T), self.embed(batch))
        slots_T, duo, routes = self._tensor(batch.slots_T).long(), self.config.duo, None
        if duo is not None:
            routes = Routes(duo, self.config.layers, self._tensor(batch.positions_T).long())
            self.taken = routes.taken
        return Pass(batch, slots_T, turns, views, paths_T, inputs_LTE, routes, self.exact)

    def embed(self, batch: Batch) -> Tensor:
        """x_TC of the batch's tokens, before the first layer."""
        tokens_T, positions_T = self._tensor(batch.tokens_T), self._tensor(batch.positions_T)
        given = batch.vectors_NC is not None
        x_TC = F.embedding(tokens_T.clamp(min=0) if given else tokens_T, self.embedding_VC)
        if self.config.embedding_scale != 1.0:
            # Rounded to the weights' type first, as the checkpoint was trained.
            x_TC = x_TC * torch.tensor(self.config.embedding_scale, dtype=self.dtype)
        if given:
            self.config.usual("a pass over given vectors")
            at_N, vectors_NC = map(self._tensor, batch.given())
            x_TC[at_N] = vectors_NC.to(x_TC.dtype)
        if self.positions_PC is not None:
            x_TC = x_TC + F.embedding(positions_T, self.positions_PC)
        return x_TC

    def _turns(self, batch: Batch, positions_T: Tensor) -> Turns:
        dtype = torch.float32 if self.fused is not None else self.dtype
        found = {}
        for kind, (rotary, angles) in self.rotaries.items():
            if rotary.kind == "dynamic":
                lengths = self._tensor(batch.query_start_B1).diff()
                context_T = self._tensor(batch.context_B).repeat_interleave(lengths)
                angles = frequencies(rotary, context_T)
            found[kind] = cos_sin(rotary, angles, positions_T, dtype)
        return found

    def _tensor(self, array: np.ndarray | Tensor) -> Tensor:
        return array if isinstance(array, Tensor) else torch.from_numpy(array).to(self.device)
