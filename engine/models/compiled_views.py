"""Views of a batch as the fused step reads them, with the scratch that attention needs."""

from typing import Any

import numba
import numpy as np
import torch

from engine.kernels.compiled import address
from engine.kernels.decoder_step import Buffers, Inputs, Shape
from engine.kernels.decoder_step.views_cpu import attend, numbers, scratch
from engine.kernels.matmul.pack import aligned
from engine.models.batch import Batch, Views
from engine.models.config import ModelConfig
from engine.models.rotary import cos_sin, frequencies
from engine.models.view_attention import pure, require_views

NONE = np.zeros(0, np.int32)


class FusedViews:
    """The view fields of a step's `Inputs`, and where the attention that reads them lies."""

    def __init__(self, config: ModelConfig) -> None:
        self.config, self.attend = config, 0
        self._turn = np.zeros(0, np.float32)
        self._places, self._work = np.zeros(0, np.int64), np.zeros(0, np.float32)
        floats = np.zeros(0, np.float32)
        self.nothing: dict[str, Any] = {
            "first_pairs": NONE, "blocks": NONE, "seen": NONE, "shifts": NONE, "block_table": NONE,
            "block_width": 0, "sequence": NONE, "members": 1, "pure_turn": floats,
            "places": self._places, "places_size": 0, "scratch": floats, "scratch_size": 0,
        }  # fmt: skip

    def read(self, batch: Batch, views: Views) -> tuple[dict[str, Any], int]:
        """What the step reads of these views, and how many attention tasks it has."""
        c, tokens, threads = self.config, len(batch.tokens_T), numba.get_num_threads()
        enough = -(-4 * threads // tokens)
        members = max(1, c.kv_heads // enough)
        queries = members * c.heads // c.kv_heads
        places, work = numbers(queries), scratch(queries, c.head_dim)
        if self._places.size < threads * places or self._work.size < threads * work:
            self._places = aligned(threads * places, np.int64)
            self._work = aligned(threads * work, np.float32)
        first, block, seen, shift, table = (
            np.ascontiguousarray(array, np.int32)
            for array in (
                views.first_B1, views.block_N, views.seen_N, views.shift_N, views.table_KP
            )
        )  # fmt: skip
        lengths = np.diff(batch.query_start_B1)
        sequence = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        made = {
            "first_pairs": first, "blocks": block, "seen": seen, "shifts": shift,
            "block_table": table.reshape(-1), "block_width": table.shape[1], "sequence": sequence,
            "members": members, "pure_turn": self._turns(int(shift.max(initial=0)) + 1),
            "places": self._places, "places_size": places,
            "scratch": self._work, "scratch_size": work,
        }  # fmt: skip
        return made, tokens * -(-c.kv_heads // members)

    def compile(self, shape: Shape, windows: np.ndarray, inputs: Inputs, buffers: Buffers) -> int:
        """Where the attention's machine code is for arguments like these; compiled if it is new."""
        if not self.attend:
            require_views(self.config)
            pages = inputs.cache_like
            arguments = 0, 0, shape, windows, inputs, buffers, pages, pages, 0
            self.attend = address(attend, *arguments)
        return self.attend

    def _turns(self, positions: int) -> np.ndarray:
        """Cosines and sines up to a shift; the table doubles when it is outgrown."""
        c = self.config
        assert c.rotary is not None
        if positions * c.head_dim > self._turn.size:
            at = torch.arange(max(2 * positions, 1024))
            table = cos_sin(pure(c.rotary), frequencies(c.rotary), at, torch.float32)
            self._turn = torch.cat(table, dim=-1).reshape(-1).numpy()
        return self._turn
