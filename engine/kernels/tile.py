"""The multiply-add tile every product is made of: y[r, p] += Σ_k x[r, k] · w[k, p], k in order.

`rows` rows meet `panels` panels of 16 columns; the sums stay in registers while k runs. Each sum is
one fused multiply-add after another in order of k, so its bits depend on its own row and column
only, not on the tile's size: that is what makes results independent of the batch.
Weights are float32, bfloat16 bits (uint16), e4m3 codes (uint8), or bfloat16 pairs (uint32: k even
below, k odd above).
"""

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels import lanes
from engine.kernels.compiled import emitted
from engine.kernels.lanes import INTS, LANES, WIDE, whole

# Cache lines of a panel that a single row, which waits for memory, asks for before their turn.
# With AVX-512 the processor's own prefetching keeps up with eight streams of float32, less so with
# the conversions of bfloat16 between them. Without AVX-512 asking costs more than it brings.
AHEAD = 32 if WIDE else 0


@dataclass
class _Emitter:
    """One tile's pointers and how its weights are read."""

    builder: Any
    rows: list[Any]
    columns: list[Any]  # start of each panel
    step: Any  # weights from one k to the next
    kind: Any  # numba type of a weight

    def weights(self, k: Any, pairs: Any) -> tuple[list[Any], list[Any]]:
        """The panels' vectors at k = 2·pairs and, after it, at k + 1."""
        b = self.builder
        if self.kind == types.uint32:
            at = b.mul(pairs, whole(LANES))
            both = [self._read(start, at, INTS) for start in self.columns]
            if AHEAD and len(self.rows) == 1:
                self._fetch(b.add(at, whole(AHEAD * LANES)))
            even = [b.shl(raw, ir.Constant(INTS, [16] * LANES)) for raw in both]
            odd = [b.and_(raw, ir.Constant(INTS, [-65536] * LANES)) for raw in both]
            return self._floats(even), self._floats(odd)
        at = b.mul(k, self.step)
        if AHEAD and self.kind == types.float32 and len(self.rows) == 1:
            for line in (AHEAD, AHEAD + 1):
                self._fetch(b.add(at, b.mul(self.step, whole(line))))
        return self._plain(at), self._plain(b.add(at, self.step))

    def last(self, k: Any, pairs: Any) -> list[Any]:
        """The panels' vectors at an even k that has no neighbour."""
        if self.kind == types.uint32:
            return self.weights(k, pairs)[0]
        return self._plain(self.builder.mul(k, self.step))

    def _floats(self, vectors: list[Any]) -> list[Any]:
        return [self.builder.bitcast(vector, lanes.VECTOR) for vector in vectors]

    def _plain(self, at: Any) -> list[Any]:
        if self.kind == types.float32:
            return [self._read(start, at, lanes.VECTOR) for start in self.columns]
        if self.kind == types.uint8:
            codes = [self._read(start, at, lanes.BYTES, 1) for start in self.columns]
            return [lanes.widen_bytes(self.builder, each) for each in codes]
        shorts = [self._read(start, at, lanes.SHORTS) for start in self.columns]
        return [lanes.widen(self.builder, short) for short in shorts]

    def _read(self, start: Any, at: Any, vector: ir.Type, align: int = 2) -> Any:
        pointer = lanes.at(self.builder, start, at)
        return lanes.load(self.builder, self.builder.bitcast(pointer, vector.as_pointer()), align)

    def _fetch(self, at: Any) -> None:
        """Ask for the line each panel has there, past its end too: no fault, only a wasted read."""
        for start in self.columns:
            lanes.fetch(self.builder, lanes.at(self.builder, start, at))

    def step_k(self, sums: list[Any], k: Any, weights: list[Any]) -> list[Any]:
        """The sums after one more k."""
        b, found, width = self.builder, [], len(weights)
        for row, start in enumerate(self.rows):
            x = lanes.splat(b, b.load(lanes.at(b, start, k)))
            for panel, w in enumerate(weights):
                found.append(lanes.fma(b, x, w, sums[row * width + panel]))
        return found

    def run(self, sums: list[Any], depth: Any) -> list[Any]:
        """All of k: pairs in a loop, then the odd one."""
        b = self.builder
        pairs = b.ashr(depth, whole(1))
        before = b.block
        loop, after = b.append_basic_block("pairs"), b.append_basic_block("after")
        tail, done = b.append_basic_block("tail"), b.append_basic_block("done")
        b.cbranch(b.icmp_signed(">", pairs, whole(0)), loop, after)

        b.position_at_end(loop)
        i = _phi(b, lanes.INT64, (whole(0), before))
        running = [_phi(b, lanes.VECTOR, (start, before)) for start in sums]
        k = b.shl(i, whole(1))
        even, odd = self.weights(k, i)
        turned = self.step_k(self.step_k(running, k, even), b.add(k, whole(1)), odd)
        following = b.add(i, whole(1))
        for phi, value in zip([i, *running], [following, *turned], strict=True):
            phi.add_incoming(value, loop)
        b.cbranch(b.icmp_signed("<", following, pairs), loop, after)

        b.position_at_end(after)
        whole_pairs = [
            _phi(b, lanes.VECTOR, (start, before), (end, loop))
            for start, end in zip(sums, turned, strict=True)
        ]
        is_odd = b.trunc(b.and_(depth, whole(1)), ir.IntType(1))
        b.cbranch(is_odd, tail, done)

        b.position_at_end(tail)
        k = b.shl(pairs, whole(1))
        finished = self.step_k(whole_pairs, k, self.last(k, pairs))
        b.branch(done)

        b.position_at_end(done)
        return [
            _phi(b, lanes.VECTOR, (even_end, after), (odd_end, tail))
            for even_end, odd_end in zip(whole_pairs, finished, strict=True)
        ]


def _phi(builder: Any, kind: ir.Type, *incoming: tuple[Any, Any]) -> Any:
    phi = builder.phi(kind)
    for value, block in incoming:
        phi.add_incoming(value, block)
    return phi


def tile(rows: int, panels: int) -> Any:
    """The numba intrinsic of one tile size.

    Arguments: x, x_at, x_stride (elements between rows), valid (1 … rows; further rows repeat the
    last, which then is written with equal values), w, w_at, w_step (elements between k; ignored for
    pairs), w_panel (elements between panels), depth (k), y, y_at, y_stride. `_at` are offsets in
    elements into flat or C-contiguous arrays; panel p of y starts 16·p columns on.
    """

    @emitted
    def multiply_add(
        context, x, x_at, x_stride, valid, w, w_at, w_step, w_panel, depth, y, y_at, y_stride
    ):
        size = types.int64
        signature = types.void(x, size, size, size, w, size, size, size, size, y, size, size)

        def emit(target, builder, signature, args):
            x, x_at, x_stride, valid, w, w_at, w_step, w_panel, depth, y, y_at, y_stride = args
            kinds, b = signature.args, builder
            weight = kinds[4].dtype
            stored = {
                4: lanes.FLOAT if weight == types.float32 else lanes.INT32,
                2: lanes.INT16,
                1: lanes.INT8,
            }
            x = lanes.address(target, b, kinds[0], x, x_at, lanes.FLOAT)
            w = lanes.address(target, b, kinds[4], w, w_at, stored[weight.bitwidth // 8])
            y = lanes.address(target, b, kinds[9], y, y_at, lanes.FLOAT)
            last = b.sub(valid, whole(1))
            row = [
                b.select(b.icmp_signed("<", whole(r), last), whole(r), last) for r in range(rows)
            ]
            outputs = [
                lanes.at(b, y, b.add(b.mul(r, y_stride), whole(LANES * p)))
                for r in row
                for p in range(panels)
            ]
            sums = [lanes.load(b, b.bitcast(out, lanes.VECTOR.as_pointer())) for out in outputs]
            emitter = _Emitter(
                b,
                [lanes.at(b, x, b.mul(r, x_stride)) for r in row],
                [lanes.at(b, w, b.mul(w_panel, whole(p))) for p in range(panels)],
                w_step,
                weight,
            )
            for value, out in zip(emitter.run(sums, depth), outputs, strict=True):
                lanes.store(b, value, out)
            return target.get_dummy_value()

        return signature, emit

    return multiply_add
