"""A described engine's replicas: memory, the cost of steps, and when each request is answered.

Requests are dealt to data-parallel ranks in turn, each with a scheduler and a cache of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from engine.core.errors import BadInput
from engine.hardware.cost.attention import QUERIES
from engine.hardware.cost.constants import Constants, constants
from engine.inference.executors.costs.device_cost import cost_of
from engine.inference.executors.costs.measured_step_cost import ATTENTION, MeasuredCost
from engine.inference.executors.costs.operator_step_cost import CurvedCost
from engine.inference.executors.costs.rank_memory import rank_cache, rank_weights
from engine.inference.executors.costs.ranked_step_cost import BUBBLE, Cost, RankedCost
from engine.inference.executors.modelled import Modelled
from engine.inference.serving_time.counted_batch import Limits, Prompts, serve
from engine.inference.serving_time.described import GIB, USABLE, ServingRun

HOST = "host"
OF_ROWS = ("head", "gather")  # parts that go by rows of logits, the others by tokens
LOGITS = 10  # bytes of a logit while it is drawn from: 16 bits, and twice 32


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of the fullest device, and the blocks that its cache has."""

    weights: float
    cache: float
    activations: float
    engine: float
    blocks: int


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of each request from its arrival, and of an average step by part."""

    ttft_R: np.ndarray
    tpot_R: np.ndarray  # nan where an answer is one token
    latency_R: np.ndarray
    seconds: float  # from the first arrival to the last token
    tokens: int  # answered
    parts: Mapping[str, float]
    steps: int
    preempted: int


class Replicas:
    """What a run's engine has and costs; `times` plays requests on it."""

    def __init__(self, run: ServingRun) -> None:
        """Raises BadInput where the run does not fit together."""
        self.run, self.config, self.ranks = run, run.config(), run.split.ranks
        self.ranks.check(self.config)
        self.engine = run.engine.constants()
        split, sheet = run.split, run.cluster.sheet()
        self.choice = Modelled(
            device=run.cluster.device, constants=run.cluster.constants,
            profile=run.cluster.profile, tensor_parallel=split.tensor,
            pipeline_parallel=split.pipeline, data_parallel=split.data,
            expert_parallel=split.expert,
        )  # fmt: skip
        self.cost: Cost = cost_of(self.config, sheet, run.dtype, self.choice)
        self._inner = self.cost.inner if isinstance(self.cost, RankedCost) else self.cost
        own = self._inner
        self._plain = own.plain if isinstance(own, MeasuredCost) else own
        shape = self._plain.counted(1, 1, [(1, 0)] * self.ranks.pipeline, 1)
        others = [op.name for op in self.cost.describe(shape) if op.name != ATTENTION]
        waits = [BUBBLE] if self.ranks.pipeline > 1 and BUBBLE not in others else []
        self.names = [ATTENTION, *others, *waits, HOST]
        self._others: dict[tuple[int, int], list[float]] = {}  # by tokens and rows
        self._parts: dict[tuple[int, int], dict[str, float]] = {}
        self._blocks: dict[tuple[int, int], float] = {}  # attention by answers and blocks

    @cached_property
    def memory(self) -> Memory:
        """Raises BadInput where the weights leave no room for a cache."""
        run, config, limits = self.run, self.config, self.run.engine
        shard = self.ranks.shard(config)
        weights = rank_weights(config, self.ranks, run.dtype)
        wide = 4 * config.hidden + 3 * max(shard.width, config.hidden)
        activations = 2.0 * limits.tokens * wide + LOGITS * limits.running * config.vocab
        page = limits.page * rank_cache(config, self.ranks, run.dtype)
        whole = run.cluster.sheet().capacity * GIB * USABLE
        left = whole * limits.memory - weights - activations - self.engine.reserved
        blocks = limits.blocks or int(left // page)
        if blocks < 1:
            raise BadInput(
                f"device {run.cluster.device}: {weights / 1e9:.3g} GB of weights on each of "
                f"{self.ranks.count} leave no room for a cache in {limits.memory:.0%} of "
                f"{whole / 1e9:.3g} GB: {page - left:,.0f} bytes too few; take more ranks, a "
                "larger device or a smaller model"
            )
        return Memory(weights, blocks * page, activations, self.engine.reserved, blocks)

    def step(self, ones: int, seen: int, chunks: Prompts, rows: int) -> list[float]:
        """Seconds of a step's parts by `names`: attention first, the host's last."""
        told = self._told(ones, seen, chunks, rows)
        host = self.engine.per_step + self.engine.per_sequence * (ones + len(chunks))
        return [*told, host]

    def _told(self, ones: int, seen: int, chunks: Prompts, rows: int) -> list[float]:
        inner = self._inner
        if not isinstance(inner, MeasuredCost) or self.ranks.pipeline > 1:
            found = self.cost.describe(self._plain.counted(ones, seen, chunks, rows))
            by_name = {op.name: op.seconds for op in found}
            return [by_name.get(name, 0.0) for name in self.names[:-1]]
        tokens = ones + sum(new for new, _ in chunks)
        if (tokens, rows) not in self._others:
            own, drawn = self._described(tokens, 1), self._described(1, rows)
            self._others[tokens, rows] = [
                (drawn if name in OF_ROWS else own).get(name, 0.0) for name in self.names[1:-1]
            ]
        attention = self._answers(ones, seen) if not chunks else self._call(ones, seen, chunks)
        return [attention, *self._others[tokens, rows]]

    def _described(self, tokens: int, rows: int) -> dict[str, float]:
        """Seconds of a step's parts, of which attention means nothing."""
        if (tokens, rows) not in self._parts:
            ops = self.cost.describe(self._plain.counted(tokens, tokens, [], rows))
            self._parts[tokens, rows] = {op.name: op.seconds for op in ops}
        return self._parts[tokens, rows]

    def _call(self, ones: int, seen: int, chunks: Prompts) -> float:
        assert isinstance(self._inner, MeasuredCost)
        told = self._inner.attention(self._plain.counted(ones, seen, chunks, ones))
        return told or 0.0

    def _answers(self, ones: int, seen: int) -> float:
        """Attention of answers alone, straight between whole blocks of their mean context."""
        block, share = divmod(seen / ones / QUERIES, 1)
        ends = []
        for at in (int(block), int(block) + 1):
            if (ones, at) not in self._blocks:
                self._blocks[ones, at] = self._call(ones, max(1, at * QUERIES) * ones, [])
            ends.append(self._blocks[ones, at])
        return ends[0] + share * (ends[1] - ends[0])

    def times(
        self, arrival_R: np.ndarray, prompt_R: np.ndarray, answer_R: np.ndarray, slower: float = 1.0
    ) -> Times:
        """Every request answered, by steps `slower` times as long as the model says."""
        run, count = self.run, len(arrival_R)
        limits = Limits(run.engine.running, run.engine.tokens, self.memory.blocks, run.engine.page)
        first_R, last_R = np.empty(count), np.empty(count)
        total: dict[str, float] = {}
        steps = preempted = 0

        def cost(ones: int, seen: int, chunks: Prompts, rows: int) -> list[float]:
            return [slower * part for part in self.step(ones, seen, chunks, rows)]

        for rank in range(run.split.data):
            mine = slice(rank, None, run.split.data)
            if not len(arrival_R[mine]):
                continue
            served = serve(arrival_R[mine], prompt_R[mine], answer_R[mine], limits, cost)
            first_R[mine], last_R[mine] = served.first_R, served.last_R
            for name, part in zip(self.names, served.parts, strict=False):
                total[name] = total.get(name, 0.0) + part
            steps, preempted = steps + served.steps, preempted + served.preempted
        with np.errstate(invalid="ignore", divide="ignore"):
            tpot_R = np.where(answer_R > 1, (last_R - first_R) / (answer_R - 1), np.nan)
        return Times(
            first_R - arrival_R, tpot_R, last_R - arrival_R,
            float(last_R.max() - arrival_R.min()), int(answer_R.sum()),
            {name: part / steps for name, part in total.items()}, steps, preempted,
        )  # fmt: skip

    @property
    def constants(self) -> Constants | None:
        """Those of the operators' curves, where these are asked."""
        if isinstance(self._inner, CurvedCost):
            return self._inner.warm
        if self.run.cluster.profile:
            return constants(self.run.cluster.constants, self.run.cluster.device)
        return None
