"""Real ranks that share each step of a served model by tokens or by tensors, over one paged cache.

Every rank keeps the keys and values of its own heads for all tokens, whichever way they came. Ranks
stand in groups: a group shares tokens with the others, its ranks share the group's matrices, and a
second copy of the weights is cut among all ranks. Embedding and head are whole everywhere.
Shape letters: T new tokens, t of one group, C hidden, H heads of a rank, D head size, R samples.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from engine.core.errors import BadInput
from engine.distributed.axis import Axis
from engine.distributed.launch import launch
from engine.distributed.mesh import Mesh, MeshShape
from engine.distributed.rank import Rank
from engine.models.attention import Attention, Pass
from engine.models.batch import Batch, pack
from engine.models.config import ModelConfig
from engine.models.gathered import Gathered
from engine.models.kv import PagedKV, cache_spec
from engine.models.loading.find import find
from engine.models.model import Block, Model
from engine.models.ops import plain_ops
from engine.models.parameters import layer_parameters
from engine.training.parallel.tensor.shards import cut, divides, splits

PAGE = 8  # tokens
LIMIT = 60.0  # seconds


class Step(NamedTuple):
    """Who takes part in a step, by number of request, and whether it is shared by tokens."""

    requests: list[int]
    by_tokens: bool


@dataclass(frozen=True)
class Answers:
    """Of each request: the tokens said, greedily, and the logits they were taken from."""

    tokens: list[list[int]]
    logits: list[np.ndarray]  # float32 [tokens, vocabulary]

    def apart(self, other: "Answers") -> float:
        """The largest difference of logits, over the largest logit."""
        pairs = list(zip(self.logits, other.logits, strict=True))
        most = max(float(np.abs(theirs).max()) for _, theirs in pairs)
        return max(float(np.abs(ours - theirs).max()) for ours, theirs in pairs) / most


class Served:
    """Requests under way: their tokens, how many of them are cached, and their pages."""

    def __init__(self, prompts: Sequence[Sequence[int]], longest: int) -> None:
        self.known = [list(prompt) for prompt in prompts]
        self.prompts = [len(prompt) for prompt in prompts]
        self.cached = [0] * len(prompts)
        self.each = -(-longest // PAGE)  # pages of a request
        self.logits: list[list[np.ndarray]] = [[] for _ in prompts]

    def batch(self, requests: list[int]) -> Batch:
        """What is known and not cached yet of those requests."""
        chunks = [self.known[one][self.cached[one] :] for one in requests]
        pages = [list(range(one * self.each, (one + 1) * self.each)) for one in requests]
        return pack(chunks, [self.cached[one] for one in requests], pages, PAGE)

    def take(self, requests: list[int], logits_RV: Tensor) -> None:
        """A token for each of them."""
        for one, logits_V in zip(requests, logits_RV, strict=True):
            self.cached[one] = len(self.known[one])
            self.known[one].append(int(logits_V.argmax()))
            self.logits[one].append(logits_V.numpy())

    def answers(self) -> Answers:
        """What has been said so far."""
        said = [known[count:] for known, count in zip(self.known, self.prompts, strict=True)]
        return Answers(said, [np.stack(each) for each in self.logits])


def alone(model: str, prompts: Sequence[Sequence[int]], answer: int) -> Answers:
    """`answer` tokens for each prompt, of one process that has one request at a time."""
    whole = _whole(model)
    served = Served(prompts, max(map(len, prompts)) + answer)
    kv = PagedKV(whole.spec, len(prompts) * served.each, PAGE)
    for one in range(len(prompts)):
        for _ in range(answer):
            served.take([one], whole.forward(served.batch([one]), kv))
    return served.answers()


def on_ranks(
    model: str,
    prompts: Sequence[Sequence[int]],
    steps: Sequence[Step],
    ranks: int = 2,
    groups: int = 2,
    other_heads: bool = False,
) -> list[Answers]:
    """The same of `ranks` processes in `groups` after `steps`; every rank's account.

    `other_heads`: tensor parts are of other heads than those that the rank keeps, which is wrong.
    Raises BadInput, RankLost among it.
    """
    divides(find(model).config, ranks)
    if ranks % groups:
        raise BadInput(f"groups {groups}: do not divide {ranks} ranks")
    given = {
        "model": model, "prompts": [list(map(int, each)) for each in prompts], "groups": groups,
        "steps": [(list(step.requests), step.by_tokens) for step in steps], "other": other_heads,
    }  # fmt: skip
    records = launch(_work, ranks, given, limit=LIMIT)
    accounts = []
    for record in records:
        tokens = [record.array(f"tokens/{one}").tolist() for one in range(len(prompts))]
        logits = [record.array(f"logits/{one}") for one in range(len(prompts))]
        accounts.append(Answers(tokens, logits))
    return accounts


def _whole(model: str) -> Model:
    opened = find(model).open()
    return Model(opened.config, opened.weights, plain=True)


def _work(rank: Rank, given: dict[str, Any]) -> None:
    steps = [Step(*each) for each in given["steps"]]
    longest = max(map(len, given["prompts"])) + len(steps)
    served = Served(given["prompts"], longest)
    rank.enter("loading")
    share = Share(rank, _whole(given["model"]), given["groups"], given["other"])
    kv = PagedKV(share.spec, len(served.known) * served.each, PAGE)
    rank.enter("serving")
    for step in steps:
        batch = served.batch(step.requests)
        served.take(step.requests, share.forward(batch, kv, step.by_tokens))
    said = served.answers()
    for one, (tokens, logits) in enumerate(zip(said.tokens, said.logits, strict=True)):
        rank.record.put(f"tokens/{one}", np.array(tokens))
        rank.record.put(f"logits/{one}", logits)


class Share:
    """A rank's share of a model: its part of the group's copy and of the copy cut among all."""

    def __init__(self, rank: Rank, whole: Model, groups: int, other_heads: bool) -> None:
        parts = rank.ranks // groups
        mesh = Mesh(rank, MeshShape(context=groups, tensor=parts))
        self.all, self.group = mesh.axis("context", "tensor"), mesh.axis("tensor")
        self.across, self.whole = mesh.axis("context"), whole
        # A group's part t is cut once more among groups: heads lie in that order, not in ranks'.
        kept = mesh.place["tensor"] * groups + mesh.place["context"]
        at = rank.ranks - 1 - kept if other_heads else kept
        self.cut_by_all = blocks(whole, at, rank.ranks)
        self.cut_by_group = blocks(whole, mesh.place["tensor"], parts)
        self.exchanging = []
        for kept_block, own in zip(self.cut_by_all, self.cut_by_group, strict=True):
            assert isinstance(kept_block.attention, Attention)
            assert isinstance(own.attention, Attention)
            exchange = Exchanging(kept_block.attention, own.attention, self.across)
            self.exchanging.append(exchange)
        self.spec = cache_spec(part(whole.config, rank.ranks), "float32")

    @torch.inference_mode()
    def forward(self, batch: Batch, kv: PagedKV, by_tokens: bool) -> Tensor:
        """logits_RV, the same on every rank."""
        whole, here, x_TC = self.whole, self.whole.shared(batch), self.whole.embed(batch)
        layers = self._by_tokens if by_tokens else self._by_tensors
        x_TC = layers(x_TC, here, kv.tensors)
        return whole.head(whole.norm(x_TC[torch.from_numpy(batch.logits_at_R).long()])).float()

    def _by_tensors(self, x_TC: Tensor, here: Pass, caches: list[dict[str, Tensor]]) -> Tensor:
        """x_TC after all layers, each rank having computed its part of every matrix."""
        for block, cache in zip(self.cut_by_all, caches, strict=True):
            y_TC = block.attention(block.attention_norm(x_TC), here, cache)
            x_TC = x_TC + self.all.all_reduce(y_TC)
            x_TC = x_TC + self.all.all_reduce(block.mlp(block.mlp_norm(x_TC)))
        return x_TC

    def _by_tokens(self, x_TC: Tensor, here: Pass, caches: list[dict[str, Tensor]]) -> Tensor:
        """The same, each group having computed its part of the tokens."""
        count, groups = len(x_TC), self.across.size
        each = -(-count // groups)
        x_tC = pad(x_TC, (0, 0, 0, groups * each - count))[self.across.at * each :][:each]
        for block, attention, cache in zip(self.cut_by_group, self.exchanging, caches, strict=True):
            y_tC = attention(block.attention_norm(x_tC), here, cache)
            x_tC = x_tC + self.group.all_reduce(y_tC)
            x_tC = x_tC + self.group.all_reduce(block.mlp(block.mlp_norm(x_tC)))
        return self.across.all_gather(x_tC)[:count]


class Exchanging:
    """Attention over all tokens for the heads of `kept`, whose products are `own`'s over this
    group's tokens: those are exchanged for heads before, and heads for tokens after."""

    def __init__(self, kept: Attention, own: Attention, across: Axis) -> None:
        self.own, self.across, self.tokens = own, across, 0
        self.attention = copy(kept)
        self.attention.qkv, self.attention.out = self._heads, self._tokens

    def __call__(self, x_tC: Tensor, here: Pass, cache: dict[str, Tensor]) -> Tensor:
        """y_tC for normalised x_tC."""
        self.tokens = len(here.slots_T)
        return self.attention(x_tC, here, cache)

    def _heads(self, x_tC: Tensor) -> Tensor:
        """Queries, keys and values of this rank's heads, of all tokens."""
        own = self.own
        each = own.qkv(x_tC).unflatten(1, (-1, own.head_dim)).split(own.heads, dim=1)
        parts = [one.unflatten(1, (self.across.size, -1)) for one in each]
        sent_GtHD = torch.cat(parts, dim=2).movedim(1, 0)
        return self.across.all_to_all(sent_GtHD).flatten(0, 1)[: self.tokens].flatten(1)

    def _tokens(self, o_TX: Tensor) -> Tensor:
        """What this group's tokens add, from all heads of its part."""
        groups = self.across.size
        each = -(-len(o_TX) // groups)
        rows_GtX = pad(o_TX, (0, 0, 0, groups * each - len(o_TX))).unflatten(0, (groups, each))
        return self.own.out(self.across.all_to_all(rows_GtX).movedim(0, 1).flatten(1))


def part(config: ModelConfig, ranks: int) -> ModelConfig:
    """What one of so many tensor ranks computes, as a model."""
    return replace(
        config, heads=config.heads // ranks, kv_heads=config.kv_heads // ranks,
        width=config.width // ranks,
    )  # fmt: skip


def blocks(whole: Model, at: int, ranks: int) -> list[Block]:
    """The layers of tensor rank `at`."""
    config, plan, own = whole.config, splits(whole.config, ranks), part(whole.config, ranks)
    found = []
    for layer in range(config.layers):
        held = {
            each.name: cut(each, whole.weights[each.name], plan[each.name], at, ranks)
            for each in layer_parameters(config, layer)
        }
        gathered = Gathered(layer_parameters(own, layer), held, plain_ops(), torch.float32, "cpu")
        found.append(Block(own, layer, gathered))
    return found
