"""The modelled executor: no tensors, the time a described device would take for each step.

In comes a step; out come token numbers that depend on request seed and position alone, and the
seconds that roofline, page movements and stated overheads add up to. The engine moves the clock.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from engine.core.clock import VirtualClock
from engine.core.errors import BadInput
from engine.hardware import roofs_of
from engine.hardware.device import Device, device
from engine.hardware.link import Link, link
from engine.hardware.measure import measure
from engine.hardware.roofs import THIS_MACHINE
from engine.inference.executors.costs import described_canvases as canvases
from engine.inference.executors.costs.device_cost import Choice, cost_of
from engine.inference.executors.costs.forward_work import Shape
from engine.inference.executors.costs.mirrored_drafts import drafting_of
from engine.inference.executors.costs.modelled_drafts import Drafting
from engine.inference.executors.costs.operator_step_cost import CurvedCost
from engine.inference.executors.costs.prompt_reader import prompt_reader
from engine.inference.executors.costs.rank_memory import rank_cache, rank_state, rank_weights
from engine.inference.executors.costs.ranked_step_cost import (
    Cost,
)
from engine.inference.executors.costs.ranks import Ranks
from engine.inference.executors.costs.shared_step_cost import (
    SharedCost,
    shared_cost,
    shared_weights,
)
from engine.inference.executors.costs.step_cost import OpTime
from engine.inference.executors.executor import Built, Facts
from engine.inference.executors.settings import Settings
from engine.inference.requests.negative_prompt import NegativeRows
from engine.inference.requests.step import NOTHING_MOVES, Movements, Result, Step, StepPart
from engine.inference.requests.view_sequences import ViewResult
from engine.kernels import paged_rows
from engine.kernels.compiled import settled
from engine.models.config import ModelConfig
from engine.models.loading.draft import find_draft
from engine.models.loading.find import find


class ModelledExecutor:
    """Asks the closed form how long each step takes; keeps nothing between steps."""

    def __init__(
        self,
        facts: Facts,
        cost: Cost | SharedCost,
        choice: Choice,
        host: Link | None = None,
        drafting: Drafting | None = None,
    ) -> None:
        self.facts, self.cost, self.choice, self.host = facts, cost, choice, host
        self.drafting = drafting
        self.negatives = NegativeRows()
        self.turns = 1  # passes that a step takes one after another
        self.vocab = np.uint64(facts.vocab)
        self._told, self._said = settled(paged_rows.tokens), settled(paged_rows.said)
        self.tells_work = True  # flops and bytes of each step, where somebody asks for them

    def execute(self, step: Step) -> Result:
        """Tokens, and how long they would have taken. Log-probabilities are 0: nothing knows."""
        if step.seen is not None and not (self.tells_work or step.rows.steers):
            seconds = self._quietly(step)
            if seconds is not None:
                tokens_S = self._says(step)
                return Result(tokens_S, np.zeros(len(tokens_S), np.float32), seconds)
        cost, choice, drafted = self.cost, self.choice, 0.0
        if self.drafting is not None:
            drafted = self.drafting.draft(step, self._tokens)
        shape = self._shape(step)
        if self.tells_work or not isinstance(cost, CurvedCost):
            seconds, flops, moved = cost.total(shape)
        else:
            seconds, flops, moved = cost.seconds(shape), 0.0, 0.0
        seconds, flops, moved = self.turns * seconds, self.turns * flops, self.turns * moved
        seconds += choice.per_step + choice.per_sequence * step.sequences
        for again in self._steering(step):
            second = cost.total(again)
            seconds, flops, moved = seconds + second[0], flops + second[1], moved + second[2]
        moves = step.moves
        if len(moves.swap_out) or len(moves.swap_in) or len(moves.copies) or moves.stall:
            seconds += self._pages(moves)
        aligned = self._realigned(step) if step.realigned else 0.0
        tokens_S = self._says(step)
        none = np.zeros(len(tokens_S), np.float32)
        beside = 0.0, 0.0
        if self.drafting is not None:
            seconds, beside = self.drafting.beside(step, seconds)
        result = Result(
            tokens_S, none, seconds + drafted + aligned, flops=flops, bytes=moved,
            draft_seconds=drafted, align_seconds=aligned, beside=beside,
            canvases=canvases.said(step),
        )  # fmt: skip
        if self.drafting is not None and step.drafts_B is not None:
            result.hits_S = self.drafting.hits(step.rows.seed[step.sample_rows_S], step.known_S)
        if step.threads is not None:
            tokens_B = self._tokens(step.threads.seed_B, step.threads.known_B)
            result.threads = ViewResult(tokens_B, np.zeros(len(tokens_B), np.float32))
        if step.profile:
            result.parts = [
                StepPart(
                    op.name, "modelled", op.seconds, op.flops, op.bytes, "modelled", op.low, op.high
                )
                for op in cost.describe(shape)
            ]
        return result

    def _steering(self, step: Step) -> Iterator[Shape]:
        """Passes of their own: of negative rows, and of guided texts with masks."""
        negative, masked = self.negatives.of(step), canvases.steering(step)
        if negative is not None:
            lengths_X = negative.ends_X - negative.starts_X
            yield self.cost.shape(lengths_X, negative.ends_X, len(lengths_X))
        if masked is not None:
            yield self.cost.shape(*masked)

    def _quietly(self, step: Step) -> float | None:
        """Seconds of a step of which nothing but those is asked; None where one call does not tell
        them."""
        cost, choice, moves = self.cost, self.choice, step.moves
        if not isinstance(cost, CurvedCost) or not cost.calls or self.drafting is not None:
            return None
        rows = len(step.sample_rows_S)
        seconds = self.turns * cost.mixed_seconds(
            step.queries_B, step.starts_B, step.decodes, rows, step.seen or 0
        )
        seconds += choice.per_step + choice.per_sequence * len(step.rows_B)
        if moves is not NOTHING_MOVES:
            seconds += self._pages(moves)
        return seconds

    def decode_seconds(
        self, starts_B: np.ndarray, count: int, seen: int | None = None
    ) -> np.ndarray:
        """Seconds of each of `count` steps in a row in which the same sequences decode, after
        `starts_B` cached tokens in the first: those that `execute` tells. float64. `seen`: tokens
        that they see in the first, where that is known."""
        cost, choice, sequences = self.cost, self.choice, len(starts_B)
        if isinstance(cost, CurvedCost) and cost.calls:
            seconds_K = cost.decode_seconds(starts_B, count, seen)
        else:
            shapes = (cost.decode_shape(starts_B + n, sequences) for n in range(count))
            seconds_K = np.array([cost.total(shape)[0] for shape in shapes])
        return seconds_K + (choice.per_step + choice.per_sequence * sequences)

    def describe(self, step: Step) -> list[OpTime]:
        """The step's operations with time, work and the roof that binds each."""
        return self.cost.describe(self._shape(step))

    def _shape(self, step: Step) -> Shape:
        rows = len(step.sample_rows_S)
        if step.threads is not None:
            new_B, contexts_B = step.everybody()
            alone = np.ones(step.padding, np.int32)
            new_B, contexts_B = np.append(new_B, alone), np.append(contexts_B, alone)
            return self.cost.shape(new_B, contexts_B, rows + len(step.threads.contexts_B))
        if step.canvases_C is not None:
            return self.cost.shape(*canvases.asked(step))
        if step.padding:  # tokens for nobody: sequences of one token, without an answer
            alone = np.ones(step.padding, np.int32)
            new_B = np.concatenate([step.queries_B, alone])
            return self.cost.shape(new_B, np.concatenate([step.contexts_B, alone]), rows)
        if step.decodes == len(step.rows_B) and step.drafts_B is None:
            return self.cost.decode_shape(step.starts_B, rows)
        if step.drafts_B is not None:
            return self.cost.shape(step.queries_B, step.contexts_B, rows)
        given = step.starts_B, step.queries_B, step.decodes, rows
        return self.cost.mixed_shape(*given, step.seen)

    def _realigned(self, step: Step) -> float:
        """Seconds to read the decodes' keys and values, write them into a padded rectangle, and
        back: the target's and the draft's."""
        starts_D = step.starts_B[: step.decodes]
        tokens = int(starts_D.sum()) + len(starts_D) * int(starts_D.max())
        size = self.facts.bytes_per_page / step.rows.page_size
        size += self.drafting.per_token if self.drafting is not None else 0.0
        return 2 * tokens * size / self.cost.memory

    def _pages(self, moves: Movements) -> float:
        """Seconds of page copies on the device, then of both swap directions over the host link."""
        size = self.facts.bytes_per_page
        copied = 2 * len(moves.copies) * size / self.cost.memory
        if moves.stall is not None:
            return copied + moves.stall
        state = self.facts.bytes_per_state
        moved = (
            len(moves.swap_out) * size + len(moves.states_out) * state,
            len(moves.swap_in) * size + len(moves.states_in) * state,
        )
        if self.host is None:  # host memory is the device's own: read there, written here
            return copied + 2 * sum(moved) / self.cost.memory
        runs = moves.runs or tuple(np.ones(len(p)) for p in (moves.swap_out, moves.swap_in))
        return copied + sum(map(self.host.seconds, moved)) + sum(map(self._issued, runs))

    def copy_seconds(self, pages_R: np.ndarray) -> float:
        """Seconds that runs of `pages_R` pages take over the host link, one after another."""
        size = float(pages_R.sum()) * self.facts.bytes_per_page
        late = self._issued(pages_R)
        return self.host.seconds(size) + late if self.host else 2 * size / self.cost.memory

    def _issued(self, pages_R: np.ndarray) -> float:
        """Seconds by which issuing copies of runs, two a layer, is later than sending them."""
        copies, speed = 2 * self.facts.layers, self.host.bandwidth if self.host else np.inf
        sent_R = pages_R * (self.facts.bytes_per_page / copies / speed)
        return float(copies * np.maximum(self.choice.per_copy - sent_R, 0.0).sum())

    def _says(self, step: Step) -> np.ndarray:
        """One token a sample."""
        rows_S, rows = step.sample_rows_S, step.rows
        if step.ahead_S is not None:
            return self._tokens(rows.seed[rows_S], step.known_S)
        tokens_S = np.empty(len(rows_S), np.int32)
        self._said(rows.seed, rows.known, rows_S, self.vocab, tokens_S)
        return tokens_S

    def _tokens(self, seed_S: np.ndarray, known_S: np.ndarray) -> np.ndarray:
        """One token a sample, from its request's seed and how many tokens that has."""
        tokens_S = np.empty(len(seed_S), np.int32)
        self._told(seed_S, known_S, self.vocab, tokens_S)
        return tokens_S


def build(config: Settings, choice: Choice) -> Built:
    """The executor for a config, under a virtual clock. Raises BadInput."""
    found = find(config.model)
    machine = measure() if choice.device == THIS_MACHINE else device(choice.device)
    model = config.modules.of(config.streams.of(found.config, found.folder is not None))
    choice.ranks.check(model)
    per_page = config.page_size * rank_cache(model, choice.ranks, config.dtype)
    weights = shared_weights(model, choice.ranks, config.dtype, choice.parallelism)
    small, both = None, per_page
    if config.speculation.draft_model:
        small = find_draft(config.speculation.draft_model, found).config
        choice.ranks.check(small)
        weights += rank_weights(small, choice.ranks, config.dtype)
        both += config.page_size * rank_cache(small, choice.ranks, config.dtype)
    state = rank_state(model, choice.ranks)
    _fits(machine, weights, config.pages * both + 2 * config.max_running * state)
    facts = Facts(
        model=found.name,
        device=machine.name,
        vocab=model.vocab,
        context=model.max_positions,
        layers=model.layers,
        heads=model.heads,
        bytes_per_page=per_page,
        dtype=config.dtype,
        roofs=tuple(roofs_of(machine)),
        bytes_per_state=state,
        mask=model.mask,
        both_ways=model.sees_both_ways,
    )
    host = link(machine.host_link) if machine.host_link else None
    in_turn = model.streams is not None and model.streams.fault == "in_turn"
    each = replace(model, streams=None) if in_turn else model
    cost = shared_cost(each, machine, config.dtype, choice, choice.parallelism)
    drafting = None
    if config.speculation.drafts:
        drafts = _drafts_cost(config, small, machine, choice) if small else None
        drafting = drafting_of(config.speculation, model.vocab, drafts, choice.per_step)
    executor = ModelledExecutor(facts, cost, choice, host, drafting)
    executor.turns = model.streams.count if in_turn and model.streams else 1
    return Built(executor, VirtualClock(), prompt_reader(config, found.folder))


def _drafts_cost(config: Settings, small: ModelConfig, machine: Device, choice: Choice) -> Cost:
    """Of a draft model's passes, on the target's ranks or on a node of its own."""
    other, alone = config.speculation.drafts_on, config.speculation.collaborates is not None
    beside = device(other) if other else machine
    return cost_of(small, beside, config.dtype, choice, Ranks() if alone else None)


def _fits(machine: Device, weights: float, cache: float) -> None:
    """Refuse what the fullest device cannot hold."""
    over = weights + cache - machine.capacity
    if over > 0:
        raise BadInput(
            f"device {machine.name}: {weights / 1e9:.3g} GB of weights and {cache / 1e9:.3g} GB "
            f"of pages do not fit its {machine.capacity / 1e9:.3g} GB by {over / 1e9:.3g} GB "
            f"({over:,.0f} bytes); choose fewer pages, a narrower dtype, a smaller model, a larger "
            "device or more ranks"
        )
