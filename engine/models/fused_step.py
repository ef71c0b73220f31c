"""Fused decoder step: a dense Llama-like model's whole pass in one call of a compiled kernel.

`fits` says which models (Llama, Mistral, Qwen2, Qwen3 and their like); `Fused` packs the weights
once and runs batches, giving the logits the general path gives, float32 error apart.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numba
import numpy as np
import torch
from torch import Tensor

from engine.kernels import stamps
from engine.kernels.claims import STRIDE
from engine.kernels.decoder_step import (
    Buffers,
    DecodeLoop,
    DecoderStep,
    Going,
    Inputs,
    Shape,
    phases,
)
from engine.kernels.decoder_step.products_cpu import held_by
from engine.kernels.lanes import LANES
from engine.kernels.matmul.pack import aligned
from engine.kernels.paged_attention.online_cpu import room
from engine.kernels.paged_attention.tasks_cpu import Split, flat, split
from engine.kernels.quantised.pack import Packed as InCodes
from engine.models.batch import Batch
from engine.models.compiled_views import FusedViews
from engine.models.config import ModelConfig
from engine.models.fused_shapes import DTYPES, in_one_call
from engine.models.kv import PagedKV
from engine.models.packed_weights import Codes, embed, read, takes_codes
from engine.models.rotary import cos_sin, frequencies

SPLITS = 64  # ways to split attention that are kept


def fits(config: ModelConfig, dtype: torch.dtype, in_codes: bool = False) -> bool:
    """Whether this architecture, with weights of `dtype` or codes, is one the fused step knows."""
    known = str(dtype).removeprefix("torch.") in DTYPES and in_one_call(config)
    return known and (not in_codes or takes_codes(config))


class Onward(NamedTuple):
    """D rows that go on from a batch's logits by themselves."""

    rows_D: np.ndarray  # int64, of `tokens_RW`
    known_D: np.ndarray  # int32, tokens each has
    counts_D: np.ndarray  # int32, tokens each is to get, at least 1
    tokens_RW: np.ndarray  # int32, contiguous, with room for them
    tables_DP: np.ndarray  # int32 pages, with a place for all of them but the last
    scratch: int  # a page that nobody reads
    wishes: tuple[np.ndarray, ...]  # temperature (0: the likeliest), top-k, top-p, min-p, seed


def _lanes(width: int) -> int:
    return -(-width // LANES) * LANES


class Fused:
    """A packed model. `forward` may be called by one thread at a time."""

    def __init__(
        self,
        config: ModelConfig,
        weights: Mapping[str, Tensor],
        codes: Codes | None = None,
        integers: bool = False,
    ) -> None:
        self.config, self.integers = config, integers
        self._embedding, self._weights, self._matrices = read(config, weights, codes, integers)
        self._turn = np.zeros(0, np.float32)
        self._buffers: Buffers | None = None
        self._shaped: Shape | None = None  # the last one
        self._kv: PagedKV | None = None
        self._caches, self._pages = np.zeros(0, np.int64), np.zeros(0, np.float32)
        self._step: DecoderStep | None = None
        self._loop: DecodeLoop | None = None
        self._later: Inputs | None = None  # of a loop's later steps, for as many rows as it had
        self._counters = aligned(phases(config.layers) * STRIDE, np.int64)
        self._views = FusedViews(config)
        self._splits: dict[tuple[int, bytes], Split] = {}

    @property
    def formats(self) -> Counter[str]:
        """How many matrices are in codes, by format."""
        return Counter(each.format.name for each in self._matrices if isinstance(each, InCodes))

    @property
    def bytes(self) -> int:
        """Bytes of weights a step reads, whatever the batch."""
        small = self._weights.norms, self._weights.biases, self._weights.head_norms
        return sum(each.bytes for each in self._matrices) + sum(array.nbytes for array in small)

    def forward(self, batch: Batch, kv: PagedKV) -> Tensor:
        """logits_RV float32; keys and values of the new tokens land in `kv`."""
        config, tokens, rows = self.config, len(batch.tokens_T), len(batch.logits_at_R)
        if not tokens:
            return torch.empty(0, config.vocab)
        wide = _lanes(config.vocab)
        logits = aligned(rows * wide, np.float32, filled=False)  # the caller's from then on
        self._run(batch, kv, self._shape(kv, batch.by_slot), logits)
        logits_RV = logits.reshape(rows, wide)[:, : config.vocab]
        return torch.from_numpy(np.ascontiguousarray(logits_RV))

    def timed(self, batch: Batch, kv: PagedKV) -> tuple[Tensor, np.ndarray]:
        """`forward`, and the seconds that each phase of the step took."""
        stamps.ask(self._counters, True)
        try:
            logits_RV = self.forward(batch, kv)
        finally:
            stamps.ask(self._counters, False)
        return logits_RV, stamps.seconds(self._counters, phases(self.config.layers))

    def hidden(self, batch: Batch, kv: PagedKV, layers: int) -> Tensor:
        """x_TC float32 after the first `layers` layers, whose keys and values land in `kv`."""
        return self._run(batch, kv, self._shape(kv)._replace(layers=layers, vocab=0)).clone()

    def decode_loop(self, batch: Batch, kv: PagedKV, onward: Onward) -> None:
        """`forward`, and the decodes that follow it, each row fed with the token it just took.

        Row d of `onward` begins with row d of the batch's logits. Its tokens, those that `forward`
        and the sampler give one after another, are written to `onward.tokens_RW`; keys and values
        of all but the last land in `kv`.
        """
        count, after_D = len(onward.rows_D), onward.known_D + onward.counts_D
        steps, shape = int(onward.counts_D.max()), self._shape(kv)
        buffers = self._room(len(batch.tokens_T), count)
        first = self._inputs(batch, kv)
        later = self._one_each(first, count, onward.tables_DP, int(after_D.max()))
        rows_RW, tokens = onward.tokens_RW, np.ascontiguousarray(batch.tokens_T, np.int32)
        going = Going(
            steps, np.ascontiguousarray(onward.rows_D, np.int64), onward.known_D, onward.counts_D,
            rows_RW.reshape(-1), rows_RW.shape[1], self._embedding.reshape(-1), tokens,
            onward.scratch * kv.page_size, *onward.wishes,
        )  # fmt: skip
        arguments = shape, self._weights, first, later, buffers, self._counters, going
        if self._step is None:
            self._step = DecoderStep(shape, self._weights, first, buffers, self._counters)
        if self._loop is None:
            self._loop = DecodeLoop(self._step.place, *arguments)
        self._loop(*arguments)

    def _run(
        self, batch: Batch, kv: PagedKV, shape: Shape, logits: np.ndarray | None = None
    ) -> Tensor:
        """A step of that shape; x_TC as it leaves the layers, in memory the next step reuses.

        `logits`: where they are written, if that is not to be the next step's, too.
        """
        tokens, width = len(batch.tokens_T), _lanes(self.config.hidden)
        buffers = self._room(tokens, len(batch.logits_at_R))
        if logits is not None:
            buffers = buffers._replace(logits=logits)
        x_TC = buffers.x[: tokens * width].reshape(tokens, width)[:, : self.config.hidden]
        if batch.vectors_NC is None:
            embed(self._embedding, batch.tokens_T, x_TC)
        else:
            embed(self._embedding, np.maximum(batch.tokens_T, 0), x_TC)
            at_N, vectors_NC = batch.given()
            x_TC[at_N] = vectors_NC
        inputs = self._inputs(batch, kv)
        if batch.views is not None:
            place = self._views.compile(shape, self._weights.windows, inputs, buffers)
            inputs = inputs._replace(attend=place)
        arguments = shape, self._weights, inputs, buffers, self._counters
        if self._step is None:
            self._step = DecoderStep(*arguments)
        self._step(*arguments)
        return torch.from_numpy(x_TC)

    def _shape(self, kv: PagedKV, by_slot: bool = False) -> Shape:
        c, had, threads = self.config, self._shaped, numba.get_num_threads()
        size = 1 if by_slot else kv.page_size
        if had is not None and (had.page_size, had.threads) == (size, threads):
            return had
        self._shaped = Shape(
            layers=c.layers, hidden=c.hidden, heads=c.heads, kv_heads=c.kv_heads, dim=c.head_dim,
            width=c.width, vocab=c.vocab, page_size=size, qk_norm=c.qk_norm,
            eps=np.float32(c.norm_eps), scale=np.float32(c.attention_scale),
            softcap=np.float32(c.attention_softcap), threads=threads,
            paths=c.paths,
        )  # fmt: skip
        return self._shaped

    def _inputs(self, batch: Batch, kv: PagedKV) -> Inputs:
        if kv is not self._kv:
            self._kv, self._step, self._loop, self._views.attend = kv, None, None, 0
            self._later, self._pages = None, flat(kv.tensors[0]["k"])
            pairs = [tensors[name].data_ptr() for tensors in kv.tensors for name in ("k", "v")]
            self._caches = np.array(pairs, np.int64)
        # The compiled step trusts its arguments' types, so they are made sure of here.
        positions, slots, start, context, table, wanted = (
            np.ascontiguousarray(array, np.int32)
            for array in (
                batch.positions_T, batch.slots_T, batch.query_start_B1, batch.context_B,
                batch.block_table_BP, batch.logits_at_R,
            )
        )  # fmt: skip
        tasks = self._split(start)
        pages, paths = self._pages, np.zeros(len(positions), np.int32)
        if batch.paths_T is not None and self.config.paths:
            paths = np.ascontiguousarray(batch.paths_T, np.int32)
        views = self._views.nothing
        if batch.views is not None:
            views, count = self._views.read(batch, batch.views)
            tasks = Split(np.array([0, count], np.int64), tasks.heads)
        return Inputs(
            positions=positions, slots=slots, start=start,
            context=context, table=table.reshape(-1), table_width=table.shape[1],
            first_tasks=tasks.first, task_heads=tasks.heads,
            logits_at=wanted, paths=paths, turn=self._turns(int(positions.max()) + 1),
            caches=self._caches, cache_like=pages[:0], cache_size=pages.size,
            attend=0, **views,
        )  # fmt: skip

    def _one_each(self, like: Inputs, count: int, tables_DP: np.ndarray, positions: int) -> Inputs:
        """Inputs of `count` sequences of a token each, whose places are to be filled in."""
        if self._later is None or len(self._later.positions) != count:
            start = np.arange(count + 1, dtype=np.int32)
            each, zeros = start[:-1], np.zeros((3, count), np.int32)
            self._later = like._replace(
                positions=zeros[0], slots=zeros[1], start=start, context=zeros[2],
                logits_at=each, paths=np.zeros(count, np.int32), sequence=each,
            )  # fmt: skip
        tasks = self._split(self._later.start)
        return self._later._replace(
            table=np.ascontiguousarray(tables_DP, np.int32).reshape(-1),
            table_width=tables_DP.shape[1], first_tasks=tasks.first, task_heads=tasks.heads,
            turn=self._turns(positions),
        )  # fmt: skip

    def _split(self, start: np.ndarray) -> Split:
        """Attention's tasks; steps that decode or verify mostly repeat one before."""
        threads = numba.get_num_threads()
        key = threads, start.tobytes()
        found = self._splits.get(key)
        if found is None:
            c = self.config
            found = split(start, c.heads // c.kv_heads, c.kv_heads, threads)
            if len(self._splits) >= SPLITS:
                self._splits.clear()
            self._splits[key] = found
        return found

    def _turns(self, positions: int) -> np.ndarray:
        """Cosines and sines up to a position; the table doubles when it is outgrown."""
        c = self.config
        assert c.rotary is not None
        if positions * c.head_dim > self._turn.size:
            count = max(2 * positions, 1024)
            table = cos_sin(c.rotary, frequencies(c.rotary), torch.arange(count), torch.float32)
            self._turn = torch.cat(table, dim=-1).reshape(-1).numpy()
        return self._turn

    def _room(self, tokens: int, rows: int) -> Buffers:
        """Buffers for at least this many tokens and logits rows, kept between steps."""
        c, had = self.config, self._buffers
        hidden, vocab = _lanes(c.hidden), _lanes(c.vocab)
        work, threads = _lanes(room(c.head_dim, c.head_dim)), numba.get_num_threads()
        held = self._held(max(tokens, rows))
        if (
            had is not None
            and had.x.size >= tokens * hidden
            and had.normed.size >= max(tokens, rows) * hidden
            and had.logits.size >= rows * vocab
            and had.work.size >= threads * work
            and had.held_size >= held
        ):
            return had
        tokens, rows = _power(tokens), _power(rows)
        widths = {
            "x": hidden, "normed": hidden, "qkv": _lanes((c.heads + 2 * c.kv_heads) * c.head_dim),
            "mixed": c.heads * c.head_dim, "gate": _lanes(c.width), "up": _lanes(c.width),
        }  # fmt: skip
        arrays = {name: aligned(tokens * width, np.float32) for name, width in widths.items()}
        arrays["normed"] = aligned(max(tokens, rows) * hidden, np.float32)
        arrays["logits"] = aligned(rows * vocab, np.float32)
        arrays["work"] = aligned(threads * work, np.float32)
        held = self._held(max(tokens, rows))
        arrays["held"] = aligned(threads * held, np.int32)
        self._buffers = Buffers(**arrays, work_size=work, held_size=held)
        return self._buffers

    def _held(self, rows: int) -> int:
        """int32 that a thread needs for so many quantised rows."""
        if not self.integers:
            return 0
        return _lanes(max(held_by(matrix, rows) for matrix in self._matrices))


def _power(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()
