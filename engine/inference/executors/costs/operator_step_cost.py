"""Step cost by operators: how long a forward pass takes on a described GPU by fitted curves.

Products are timed as a library would run them (tiles, waves, launches), attention and row operators
by curves fitted to measurements; what the model does not know (experts, latent projections) keeps
the roofline of `step_cost` beside this. Work in flops and bytes is the roofline's.
"""

import math
from collections import Counter
from functools import lru_cache

import numpy as np

from engine.hardware.cost import curves
from engine.hardware.cost.attention import Attention
from engine.hardware.cost.constants import Constants
from engine.hardware.cost.experts import experts
from engine.hardware.cost.numbers import SINGLES, Number
from engine.hardware.device import Device
from engine.inference.executors.costs.forward_work import Shape
from engine.inference.executors.costs.measured_step_cost import ATTENTION, MeasuredCost
from engine.inference.executors.costs.ranks import Ranks
from engine.inference.executors.costs.step_seconds import StepSeconds
from engine.models.config import ModelConfig

KNOWN = ("norms", "embedding", "qkv", "out", "mlp", "head")  # operations that have curves
BY_NAME = {
    "embedding": "embedding",
    "norms": "norm",
    "experts": "experts",
}  # whose interval, if not a product's
ALONE = Ranks()
SAMPLED = 8, 2.25  # kernels that draw from logits, and times they read or write those in float32
FEW, BLOCK = 2, 128  # counts asked one by one of an operation; counts asked at once after those
MOST = 50_000  # pairs of tokens and rows kept
TOGETHER = 2.0  # visible pairs for each cached token beyond which prompts, not answers, are most


def fits(device: Device, dtype: str) -> bool:
    """Whether the cost model knows a device and a dtype."""
    return device.kind == "gpu" and device.units > 0 and dtype in curves.BYTES


@lru_cache(maxsize=32)
def _times(
    config: ModelConfig, device: str, dtype: str, found: str, ranks: Ranks
) -> dict[tuple[str, int], float]:
    """Seconds by operation and count, known so far, of one model on one device."""
    return {}


class CurvedCost(MeasuredCost):
    """Costs of steps of one model on one device by curves fitted to measurements.

    `config`: what one tensor rank of `ranks` computes (`Ranks.shard`).
    """

    def __init__(
        self,
        config: ModelConfig,
        device: Device,
        dtype: str,
        found: Constants,
        ranks: Ranks = ALONE,
    ) -> None:
        super().__init__(config, device, dtype)
        # What an operator leaves for the next lies in the last cache; weights and keys do not.
        self.warm, self.constants, self.ranks = found, found.cold(), ranks
        self.rate = curves.best_rate(device, dtype, self.constants) * self.constants.prefill.rate
        other = config.latent is not None or any(config.recurrent)
        self.known: tuple[str, ...] = () if other else KNOWN
        if self.known and found.expert(curves.BYTES[dtype]) is not None:
            self.known = (*KNOWN, "experts")
        # Of one call of attention a layer; without a device, constants know but its roofs.
        self.calls = bool(found.device and self.known and not any(config.windows))
        given = self.device, self.constants, config.heads, config.kv_heads, config.head_dim, dtype
        self.heads = Attention(*given, SINGLES)
        self.at_once = StepSeconds(self.heads, config.layers)
        every = range(config.layers)  # layers of each kind, and dense ones of each width
        self.mixers = Counter((config.at(one), config.source(one) == one) for one in every)
        self.widths = Counter(
            config.at(one).width for one in every if not config.expert_layers[one]
        )
        # Of what depends on a count alone: the same at every turn of another knob.
        self.times = _times(
            config, device.model_dump_json(), dtype, self.constants.model_dump_json(), ranks
        )
        self.asked: dict[str, int] = {}  # counts of each operation that were not known
        self._beside: dict[tuple[int, int], tuple[float, ...]] = {}  # by tokens and rows
        # By tokens, where the head is the last operation: what of `_known` does not depend on rows.
        self._headless: dict[int, tuple[float, ...]] = {}
        self._head_last = self.plain.operations[-1].name == "head"

    def _interval(self, name: str, seconds: float, shape: Shape) -> tuple[float, float] | None:
        """Of the operator that takes most of an operation, where that has curves."""
        operator = BY_NAME.get(name, "matmul")
        if name == "attention":
            operator = "prefill" if _prompts(shape) else "decode"
        elif name not in self.known:
            return None
        known = self.constants.intervals.get(operator)
        if known is None:
            return None
        return seconds * math.exp(-known.high), seconds * math.exp(-known.low)

    def _seconds(self, name: str, flops: float, size: float, shape: Shape) -> float | None:
        if name == "attention":
            return self._attention(flops, size, shape)
        count = shape.rows if name == "head" else shape.tokens
        known = self.times.get((name, count))
        if known is not None:
            return known
        if not count or name not in self.known:
            return None
        self._ask(name, count)
        return self.times[name, count]

    def _ask(self, name: str, count: int) -> None:
        """Let the curves tell an operation's seconds for `count`; where many are asked for, for
        those about it too, which costs hardly more."""
        told, asked = getattr(self, f"_{name}"), self.asked.get(name, 0)
        self.asked[name] = asked + 1
        if asked < FEW or name == "experts":
            self.times[name, count] = float(told(count))
            return
        first = count - (count - 1) % BLOCK - 1
        counts = range(first + 1, first + BLOCK + 1)
        seconds = np.broadcast_to(told(np.array(counts)), BLOCK).tolist()
        self.times |= {(name, n): one for n, one in zip(counts, seconds, strict=True)}

    def _product(self, m: Number, n: int, k: int) -> Number:
        seconds = curves.matmul(self.device, self.constants, m, n, k, self.dtype).seconds
        return seconds if np.ndim(m) else seconds.item()

    def _row(self, name: str, count: Number, width: int, numbers: int) -> Number:
        return curves.rows(self.device, self.warm, name, count, width, numbers, self.dtype).seconds

    def _embedding(self, tokens: Number) -> Number:
        return self._row("embedding", tokens, self.config.hidden, 2 * self.config.hidden)

    def _norms(self, tokens: Number) -> Number:
        """Before attention and feed-forward, and after both where the config has such."""
        c = self.config
        each = self._row("norm", tokens, c.hidden, 2 * c.hidden)
        return c.layers * c.norms * each

    def _qkv(self, tokens: Number) -> Number:
        """The product and the rotation after it, in all layers."""
        seconds: Number = 0.0
        for (c, writes), layers in self.mixers.items():
            keys = c.kv_heads * c.head_dim if writes else 0
            turned = c.heads * c.head_dim + keys
            each = self._product(tokens, turned + (0 if c.key_is_value else keys), c.hidden)
            if c.rotary is not None:
                each += self._row("rotary", tokens, turned, 2 * turned)
            seconds = seconds + layers * each
        return seconds

    def _out(self, tokens: Number) -> Number:
        seconds: Number = 0.0
        for (c, _), layers in self.mixers.items():
            seconds = seconds + layers * self._product(tokens, c.hidden, c.heads * c.head_dim)
        return seconds

    def _mlp(self, tokens: Number) -> Number:
        """Dense layers: up (with the gate), activation, down."""
        c = self.config
        seconds: Number = 0.0
        sides = 2 if c.gated else 1
        for width, layers in self.widths.items():
            each = self._product(tokens, sides * width, c.hidden)
            each += self._product(tokens, c.hidden, width)
            each += self._row("swiglu", tokens, width, (sides + 1) * width)
            seconds = seconds + layers * each
        return seconds

    def _head(self, rows: Number) -> Number:
        """The product and, by a device's own constants, drawing from the whole vocabulary's
        logits."""
        c = self.config
        product = self._product(rows, c.vocab, c.hidden)
        if not self.constants.device:
            return product
        kernels, passes = SAMPLED
        logits = 4.0 * rows * c.vocab * self.ranks.tensor
        drawn = kernels * self.device.launch + passes * logits / self.plain.memory
        return product + drawn

    def _experts(self, tokens: int) -> float:
        """Fused layers of experts, all alike in demand, with the tokens of all data ranks."""
        c, ranks = self.config, self.ranks
        assert c.experts is not None
        parts, whole = (1, ranks.sharing) if ranks.experts else (ranks.sharing, 1)
        each = experts(
            self.device, self.constants, c.hidden, c.experts.width * ranks.tensor,
            c.experts.per_token, c.experts.count, parts, whole, 0.0, tokens * ranks.data,
            self.dtype,
        )  # fmt: skip
        return float(sum(c.expert_layers) * each.seconds.item())

    def _call(self, shape: Shape) -> float:
        """A call of attention in each layer: chunks as they are, answers of mean context."""
        seconds = self.heads.call(shape.chunks, shape.singles, shape.seen)
        return self.config.layers * seconds

    def seconds(self, shape: Shape) -> float:
        """Those of `total`, where nothing else is asked."""
        if not (self.calls and shape.sequences):
            return self.total(shape)[0]
        before, *after = self._all_beside(shape)
        seconds = before + self._call(shape)
        for each in after:  # added up in the order of `total`
            seconds += each
        return seconds

    def _kept(self, tokens: int, rows: int) -> tuple[float, ...] | None:
        """`_others`, where it is known of so many."""
        beside = self._beside.get((tokens, rows))
        if beside is None:
            headless, head = self._headless.get(tokens), self.times.get(("head", rows))
            if headless is not None and head is not None:
                return (*headless, head)
        return beside

    def _all_beside(self, shape: Shape) -> tuple[float, ...]:
        """`_others`, kept."""
        if (beside := self._kept(shape.tokens, shape.rows)) is None:
            if len(self._beside) > MOST:
                self._beside.clear()
            beside = self._beside[shape.tokens, shape.rows] = self._others(shape)
        return beside

    def _others(self, shape: Shape) -> tuple[float, ...]:
        """Seconds of all that comes before attention, and of each operation after it."""
        plain, found, before = self.plain, [0.0], True
        known = self._known(shape.tokens, shape.rows)
        if known is not None:
            return known
        for (name, work, size), launch in zip(plain.works(shape), plain.launches, strict=True):
            if name == ATTENTION:
                before = False
                continue
            told = self._seconds(name, work, size, shape)
            if told is None:
                told = max(work / plain.compute, size / plain.memory) + launch
            if before:
                found[0] += told
            else:
                found.append(told)
        return tuple(found)

    def _known(self, tokens: int, rows: int) -> tuple[float, ...] | None:
        """What `_others` tells where all of it is known already."""
        times, found, before = self.times, [0.0], True
        for operation in self.plain.operations:
            name = operation.name
            if name == ATTENTION:
                before = False
                continue
            told = times.get((name, rows if name == "head" else tokens))
            if told is None:
                return None
            if before:
                found[0] += told
            else:
                found.append(told)
        if self._head_last and not before:
            self._headless[tokens] = tuple(found[:-1])
        return tuple(found)

    def decode_seconds(
        self, starts_B: np.ndarray, count: int, seen: int | None = None
    ) -> np.ndarray:
        """`total` of `count` steps in a row in which the same sequences decode, after `starts_B`
        cached tokens in the first, where attention is timed by calls (`calls`)."""
        shape = self.plain.decode_shape(starts_B, len(starts_B), seen)
        return self.at_once.decoding(self._all_beside(shape), len(starts_B), shape.seen, count)

    def mixed_seconds(
        self, new_B: np.ndarray, starts_B: np.ndarray, decodes: int, rows: int, seen: int
    ) -> float:
        """`total` of a step whose first `decodes` sequences decode, seeing `seen` tokens; others
        have `new_B` tokens of a prompt after `starts_B` cached ones (`calls`)."""
        beside = self._kept(int(np.add.reduce(new_B)), rows)
        if beside is None:
            beside = self._all_beside(self.mixed_shape(starts_B, new_B, decodes, rows, seen))
        return self.at_once.mixed(beside, new_B, starts_B, decodes, seen)

    def _attention(self, flops: float, size: float, shape: Shape) -> float:
        """Arithmetic and cache traffic of the layers that attend, a launch for each."""
        if self.calls and shape.sequences:
            return self._call(shape)
        part = self.constants.prefill if _prompts(shape) else self.constants.decode
        moved = size / (self.device.bandwidth * self.constants.decode.bandwidth)
        return self.config.attending * part.launch + max(flops / self.rate, moved)


def _prompts(shape: Shape) -> bool:
    """Whether prompts take most of a step's attention."""
    return shape.pairs > TOGETHER * shape.touched
