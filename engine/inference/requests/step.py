"""One engine step as data: what the scheduler decided and an executor does.

Shape letters: B sequences of this step, S sequences that get a token, T new tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from engine.inference.requests.prompt_scores import PromptScores
from engine.inference.requests.request import Request
from engine.inference.requests.rows import Rows
from engine.inference.requests.view_sequences import NO_PAIRS, NONE, ViewBatch, ViewResult
from engine.kernels.drafts.trees import depths
from engine.models.batch import States


class Movements(NamedTuple):
    """Pairs of pages whose contents move before a step, in this order."""

    slots: np.ndarray = NO_PAIRS  # (slot, slot) of single tokens: drafts that were kept
    swap_out: np.ndarray = NO_PAIRS  # (page, host page)
    copies: np.ndarray = NO_PAIRS  # (source page, target page)
    swap_in: np.ndarray = NO_PAIRS  # (host page, page)
    states_out: np.ndarray = NO_PAIRS  # (state page, host page)
    states_in: np.ndarray = NO_PAIRS  # (host page, state page)
    # Swaps that are not waited for: seconds until those are done that the step needs. None: its
    # own copies come first, one a page or of `runs` of so many pages each, out and back.
    stall: float | None = None
    runs: tuple[np.ndarray, np.ndarray] | None = None


NOTHING_MOVES = Movements()


@dataclass(slots=True)
class Step:
    """Work for one forward pass, and page movements that come before it.

    Sequence b computes tokens `starts_B[b] … starts_B[b] + queries_B[b]` of row `rows_B[b]` of the
    persistent batch (`rows.tokens`, `rows.tables`). A decode is a sequence with one new token, and
    its drafts.
    """

    number: int
    rows: Rows
    requests: Sequence[Request]  # by row
    rows_B: np.ndarray
    starts_B: np.ndarray  # tokens cached before this step
    queries_B: np.ndarray  # new tokens
    sample_rows_S: np.ndarray  # rows that get a token …
    sample_from_S: np.ndarray  # … from the logits after sequence b's last new token
    decodes: int  # sequences that decode; they come first
    prefill_tokens: int
    moves: Movements = NOTHING_MOVES
    states: States | None = None  # where recurrent states are read and written
    padding: int = 0  # tokens computed for nobody (static batches)
    sample_attention: bool = False
    profile: bool = False  # time the step's operations apart
    whole: bool = False  # every row decodes, in order, and nothing else happens
    # With speculation: of each sequence's new tokens the last so many are drafts, which lie in the
    # row beyond its known tokens. A row is sampled after its last known token and after each draft:
    # sample s comes after `ahead_S[s]` of them, and rows repeat in `sample_rows_S`.
    drafts_B: np.ndarray | None = None
    ahead_S: np.ndarray | None = None
    # Where drafts may branch: of each draft, in the order of rows, which of its row's drafts it
    # follows; -1: the row's last known token.
    parents_N: np.ndarray | None = None
    realigned: bool = False  # decodes of other lengths are copied into one rectangle first
    threads: ViewBatch | None = None  # threads over views that step along
    seen: int | None = None  # tokens that those which decode see, where the scheduler has counted
    canvases_C: np.ndarray | None = None  # sequences with masks: whole texts that see both ways

    @property
    def contexts_B(self) -> np.ndarray:
        """Tokens each sequence's last new token sees, itself included."""
        return self.starts_B + self.queries_B

    @property
    def tokens(self) -> int:
        """New tokens of all sequences, padding and threads left out."""
        if self.drafts_B is not None:
            return int(self.queries_B.sum())
        return self.prefill_tokens + self.decodes

    @property
    def drafted(self) -> int:
        """Drafts that this step verifies."""
        return 0 if self.drafts_B is None else int(self.drafts_B.sum())

    @property
    def known_S(self) -> np.ndarray:
        """Tokens that each sample comes after."""
        known_S = self.rows.known[self.sample_rows_S]
        if self.parents_N is not None and self.drafts_B is not None:
            known_S = known_S.copy()
            depths(self.parents_N, self.drafts_B[: self.decodes], depth_S := np.empty_like(known_S))
            own = self.drafted + self.decodes
            known_S[:own] += depth_S[:own]
            return known_S
        return known_S if self.ahead_S is None else known_S + self.ahead_S

    def before(self, s: int) -> np.ndarray:
        """The tokens that sample s comes after."""
        row, ahead = int(self.sample_rows_S[s]), 0 if self.ahead_S is None else self.ahead_S[s]
        known, tokens = int(self.rows.known[row]), self.rows.tokens[row]
        if self.parents_N is None or not ahead:
            return tokens[: known + int(ahead)]
        path, node, first = [], int(ahead) - 1, self.first_draft(s)
        while node >= 0:
            path.append(known + node)
            node = int(self.parents_N[first + node])
        return np.append(tokens[:known], tokens[path[::-1]])

    def after(self, s: int) -> list[int]:
        """The drafts that follow sample s directly, in the order they were drafted."""
        if self.drafts_B is None or self.ahead_S is None:
            return []
        row, ahead = int(self.sample_rows_S[s]), int(self.ahead_S[s])
        known, count = int(self.rows.known[row]), int(self.drafts_B[self.sample_from_S[s]])
        if self.parents_N is None:
            those = list(range(ahead, min(ahead + 1, count)))
        else:
            first = self.first_draft(s)
            parents = self.parents_N[first : first + count]
            those = np.flatnonzero(parents == ahead - 1).tolist()
        return [int(self.rows.tokens[row, known + node]) for node in those]

    def first_draft(self, s: int) -> int:
        """Where the drafts of sample s's row begin in `parents_N`."""
        assert self.drafts_B is not None
        return int(self.drafts_B[: self.sample_from_S[s]].sum())

    @property
    def sequences(self) -> int:
        """Sequences and threads that bring tokens."""
        return len(self.queries_B) + (len(self.threads.contexts_B) if self.threads else 0)

    def apart(self) -> tuple[np.ndarray, np.ndarray]:
        """Who attends by itself: each sequence, but of a text that sees both ways each token. Whose
        it is, and how many new tokens it has."""
        queries_B, times_B = self.queries_B.copy(), np.ones(len(self.queries_B), np.int64)
        times_B[self.canvases_C], queries_B[self.canvases_C] = self.queries_B[self.canvases_C], 1
        which_Q = np.repeat(np.arange(len(times_B)), times_B)
        return which_Q, queries_B[which_Q]

    def everybody(self) -> tuple[np.ndarray, np.ndarray]:
        """New tokens of each sequence and then of each thread, and what the last of them sees."""
        threads, queries, contexts = self.threads, self.queries_B, self.contexts_B
        if self.canvases_C is not None:
            which, queries = self.apart()
            contexts = contexts[which]
        if threads is None:
            return queries, contexts
        return np.append(queries, threads.queries_B), np.append(contexts, threads.contexts_B)

    def join(self, threads: ViewBatch) -> None:
        """Let `threads` step along; their page copies are made with the step's own."""
        self.threads = threads
        if len(threads.copies):
            copies = np.concatenate([self.moves.copies, threads.copies])
            self.moves = self.moves._replace(copies=copies)


def without_rows(number: int, rows: Rows, threads: ViewBatch, sample_attention: bool) -> Step:
    """A step that nobody but `threads` takes."""
    none = NONE.astype(np.int32)
    step = Step(number, rows, [], NONE, none, none, NONE, NONE, 0, 0)
    step.sample_attention = sample_attention
    step.join(threads)
    return step


class StepPart(NamedTuple):
    """One kind of operation in one step, summed over layers. `variant`: what ran it.

    `low` and `high`: seconds between which a modelled one is expected, where that is known. Of
    what runs beside others `start`, seconds after the step begins, and which `piece` of its tokens.
    """

    name: str
    variant: str
    seconds: float
    flops: float
    bytes: float
    grade: str = ""  # "modelled" where the time was not measured
    low: float | None = None
    high: float | None = None
    start: float | None = None
    piece: int | None = None


@dataclass(slots=True)
class Result:
    """What a step gave. `seconds`: how long it took, or would have on the modelled device."""

    tokens_S: np.ndarray  # int32
    logprobs_S: np.ndarray  # float32
    seconds: float
    tops: dict[int, list[tuple[int, float]]] = field(default_factory=dict)  # s -> likeliest
    prompts: dict[int, PromptScores] = field(default_factory=dict)  # by row
    canvases: dict[int, np.ndarray] = field(default_factory=dict)  # by row p_LV of its block
    flops: float = 0.0
    bytes: float = 0.0
    threads: ViewResult | None = None  # what the step's threads got
    attention_P: np.ndarray | None = None  # mass each page received, when sampled
    attention_seconds: float = 0.0
    parts: list[StepPart] = field(default_factory=list)  # when profiled
    profile_seconds: float = 0.0  # what telling them cost
    draft_logprobs_S: np.ndarray | None = None  # of the draft after each sample
    branch_S: np.ndarray | None = None  # of a tree: the branch of that draft, 0 where it is kept
    hits_S: np.ndarray | None = None  # whether an early exit foresaw each sample's token
    align_seconds: float = 0.0  # of `seconds`, before the drafts were made
    draft_seconds: float = 0.0  # of `seconds`, before the drafts were verified
    routes_TL: np.ndarray | None = None  # which of two feed-forwards each new token took by layer
    beside: tuple[float, float] = (0.0, 0.0)  # seconds of the pass from … to which others draft
