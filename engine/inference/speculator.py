"""Speculator: adds drafts to a step's decodes, and says which of them verification kept.

The page table is the alignment: each request of a batch keeps as many drafts as hold for it, gives
the pages of the others back and goes on from there; nothing is padded or moved.

Drafts may branch: a tree lies behind the known tokens of its row, each draft on the place it was
drafted at. The path that held is put in front, in tokens and results at once and in the caches
before the next step, and what follows sees a chain.

A recurrent state stays behind the drafts of a pass: those that held count as not computed, and are
computed again with the row's next ones. A step may exceed its budget by them.

Shape letters: D sequences that decode, S samples, K drafts of one request, N drafts of all.
"""

from dataclasses import replace

import numpy as np

from engine.core.errors import BadInput
from engine.inference.config import InferenceConfig
from engine.inference.page_allocation import PageAllocator
from engine.inference.requests.step import Result, Step
from engine.inference.running import Running
from engine.kernels.compiled import settled
from engine.kernels.drafts import chains, trees
from engine.kernels.drafts.lookup import Places


class Speculator:
    """What a speculation policy does to steps. Drafts take what a step has left: tokens, pages."""

    def __init__(self, config: InferenceConfig, running: Running, allocator: PageAllocator) -> None:
        """Raises BadInput for drafts longer than the cache."""
        policy, tokens = config.speculation, config.pages * config.page_size
        if policy.drafts >= tokens:
            raise BadInput(
                f"knob 'speculation.tokens': a draft of {policy.drafts} tokens is longer than the "
                f"cache, which holds {tokens}; draft fewer, or give it more pages"
            )
        of_chains = "one_length", "misaligned", "shifted"
        if policy.width > 1 and (policy.pads or policy.broken in of_chains):
            raise BadInput(
                "knob 'speculation.branches': drafts that branch have no one length to align; set "
                "it to 1, or alignment to paged and fault to none or no_residual"
            )
        if policy.width > 1 and policy.mirrors is not None:
            raise BadInput(
                "knob 'speculation.branches': drafts beside the target are chains; set it to 1"
            )
        together = policy.collaborates
        if together is not None and not together.models:
            raise BadInput("knob 'speculation.models': nobody drafts; name a model")
        self.places: Places | None = None  # where n-grams end in rows
        self.length = policy.drafts  # of a request, in the next step
        self.hold_D = self.cache_D = np.zeros(0, np.int32)  # of a step whose drafts branch
        self.policy, self.running, self.rows, self.allocator = (
            policy,
            running,
            running.rows,
            allocator,
        )
        # A model drafts its last token without computing that token's own keys and values. Where
        # all is kept the target forgets its own too, so that both caches hold the same tokens.
        self.lag = 1 if policy.draft_model else 0
        self._behind, self._planned = settled(chains.behind), settled(chains.plan)
        self._samples, self._accepted = settled(chains.samples), settled(chains.accept)
        # A state is kept from before the drafts, so none of them counts as computed.
        self.recurs = running.cache.states is not None
        self.chain_K = np.arange(-1, policy.drafts - 1, dtype=np.int32)
        # A modelled run's tokens mean nothing: as many are found as may be.
        self.looks_up = config.executor.real and not policy.draft_model

    def extend(self, step: Step, budget: int) -> Step:
        """Let the decodes of `step` verify drafts, within `budget` tokens and the pages free."""
        if not self.policy.drafts:
            return step
        rows, count = self.rows, step.decodes
        decode, rows_X = step.rows_B[:count], step.sample_rows_S
        queries_B, drafts_B = step.queries_B.copy(), np.zeros(len(step.queries_B), np.int32)
        left = budget - self._behind(decode, rows.known, step.starts_B, queries_B)
        total = 0
        if count and left > 0 and self.policy.proposes(count):
            total, step.parents_N = self._plan(decode, left, drafts_B)
        rows_S, sample_from_S = np.empty((2, len(rows_X) + total), np.int64)
        ahead_S = np.empty(len(rows_S), np.int32)
        given = rows_X, step.sample_from_S, drafts_B, count, queries_B
        self._samples(*given, rows_S, sample_from_S, ahead_S)
        step.queries_B, step.drafts_B, step.ahead_S = queries_B, drafts_B, ahead_S
        if step.states is not None and total:
            step.states = self.allocator.states.before_drafts(step.states, queries_B, drafts_B)
        step.sample_rows_S, step.sample_from_S, step.whole = rows_S, sample_from_S, False
        starts_D = step.starts_B[:count]
        step.realigned = self.policy.pads and count > 1 and bool((starts_D != starts_D[0]).any())
        return step

    def _plan(
        self, decode: np.ndarray, left: int, drafts_B: np.ndarray
    ) -> tuple[int, np.ndarray | None]:
        """Fill the drafts of each row, `left` at most in all, and give them pages.

        Returns their number, and parents_N where they branch or may.
        """
        rows, shape = self.rows, (len(decode), self.length)
        found_DK, parents_DK = np.empty(shape, np.int32), self.chain_K[: self.length]
        if self.looks_up:
            if self.policy.width > 1:
                parents_DK = np.tile(parents_DK, (len(decode), 1))
            if self.places is None or self.places.before_RW.shape != rows.tokens.shape:
                self.places = Places.of(rows.looked, rows.tokens)
            given = rows.tokens, decode, rows.known, self.places
            self.policy.propose(*given, found_DK, parents_DK)
        free, size = self.allocator.cache.available, rows.page_size
        short_N = np.empty(len(decode) * (self.length // size + 2), np.int64)
        total, pages = self._planned(
            rows.tokens, decode, rows.known, rows.limit, rows.guided, rows.pages, found_DK,
            self.looks_up, left, free, size, drafts_B, short_N,
        )  # fmt: skip
        self.allocator.take_ahead(short_N[:pages])
        if self.policy.width == 1 or not total:
            return total, None
        drafts_D = drafts_B[: len(decode)]
        some_DK = np.arange(shape[1]) < drafts_D[:, None]
        parents_N = np.broadcast_to(parents_DK, shape)[some_DK]
        if self.looks_up:
            chain_K = self.chain_K[: self.length]
            if (parents_N == np.broadcast_to(chain_K, shape)[some_DK]).all():
                return total, None
            self._check(decode, drafts_D, parents_N)
        return total, parents_N

    def _check(self, decode: np.ndarray, drafts_D: np.ndarray, parents_N: np.ndarray) -> None:
        """Raises BadInput for what is no tree of drafts."""
        rows, depth_S = self.rows, np.empty(len(parents_N) + len(decode), np.int32)
        wrong = trees.depths(parents_N, drafts_D, depth_S)
        if wrong >= 0:
            raise BadInput(
                f"speculation {type(self.policy).__name__}: draft {wrong} of a step follows "
                f"{parents_N[wrong]}, which is not before it; name a draft before it, or -1"
            )
        row = trees.twins(rows.tokens, decode, rows.known, parents_N, drafts_D)
        if row >= 0:
            raise BadInput(
                f"speculation {type(self.policy).__name__}: two drafts of request "
                f"{self.running.names[row]} are the same token after the same; draft it once"
            )

    def adapt(self, result: Result) -> None:
        """How many drafts the next step has, by what the target waited for in this one."""
        waited = result.draft_seconds / result.seconds if result.seconds > 0.0 else 0.0
        self.length = self.policy.next_length(self.length, waited)

    def straighten(self, step: Step, result: Result) -> Result:
        """Put the path that held in front of the other drafts; the result in that order.

        Keys and values of kept drafts go to their places before the next step.
        """
        assert step.drafts_B is not None and step.parents_N is not None
        rows, count = self.rows, step.decodes
        drafts_D = step.drafts_B[:count]
        own, shape = step.drafted + count, (count,)
        self.hold_D, self.cache_D = np.empty(shape, np.int32), np.empty(shape, np.int32)
        order_S = np.arange(len(result.tokens_S))
        branch_S, moves_N2 = np.zeros(len(order_S), np.int32), np.empty((own, 2), np.int32)
        moves = trees.straighten(
            rows.tokens, rows.tables, step.rows_B[:count], rows.known, step.parents_N, drafts_D,
            result.tokens_S, self.lag, rows.page_size, self.hold_D, self.cache_D, order_S,
            branch_S, moves_N2,
        )  # fmt: skip
        self.allocator.moves.extend(moves_N2[:moves].tolist())
        # The sample after a draft goes with it; a row's first stays where it is.
        sample_S = order_S.copy()
        sample_S[0], sample_S[1:own] = 0, order_S[: own - 1] + 1
        doubts_S = result.draft_logprobs_S
        return replace(
            result,
            tokens_S=result.tokens_S[sample_S],
            logprobs_S=result.logprobs_S[sample_S],
            draft_logprobs_S=None if doubts_S is None else doubts_S[order_S],
            tops={new: result.tops[old] for new, old in enumerate(sample_S.tolist())
                  if old in result.tops} if result.tops else {},
            branch_S=branch_S,
        )  # fmt: skip

    def _shift(self, decode: np.ndarray, drafts_D: np.ndarray) -> None:
        """A mistake: drafts of each row lie one place later, its last known token in front."""
        for row, drafts in zip(decode.tolist(), drafts_D.tolist(), strict=True):
            known, tokens = int(self.rows.known[row]), self.rows.tokens[row]
            tokens[known : known + drafts] = tokens[known - 1 : known - 1 + drafts].copy()

    def accept(
        self, step: Step, tokens_S: np.ndarray, ends_V: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Decodes go on from where the target's tokens_S repeat their drafts.

        The first sample of each, how many of its drafts it keeps, whether it may end here
        (`ends_V`: which tokens end answers), and the draft after each sample; pages beyond are
        given back.
        """
        assert step.drafts_B is not None
        rows, count = self.rows, step.decodes
        decode, drafts_D = step.rows_B[:count], step.drafts_B[:count]
        if self.policy.broken == "shifted":
            self._shift(decode, drafts_D)
        first_D = np.empty(count, np.int64)
        (kept_D, over_D), special_D = np.empty((2, count), np.int32), np.empty(count, np.bool_)
        drafts_S = np.zeros(len(tokens_S), np.int32)
        if step.parents_N is not None:
            hold_D, cache_D = self.hold_D, self.cache_D
            lag = 0  # it is in them
        else:
            hold_D, lag = drafts_D, self.lag
            cache_D = np.zeros_like(drafts_D) if self.recurs else drafts_D
        over = self._accepted(
            rows.tokens, decode, rows.known, rows.cached, rows.pages, drafts_D, hold_D, cache_D,
            tokens_S, rows.due, rows.ends, ends_V, lag, self.policy.broken == "one_length",
            rows.page_size, first_D, kept_D, over_D, special_D, drafts_S,
        )  # fmt: skip
        if over:
            self.allocator.give_back_ahead(decode, over_D, over)
        return first_D, kept_D, special_D, drafts_S
