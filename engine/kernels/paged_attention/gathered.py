"""Tiles over keys and values that lie wherever their pages do, as LLVM code.

Sixteen dot products are summed side by side and folded together at the end, so a key's score costs
no fold of its own. Several queries on one head are bound by arithmetic: while they compute, the
next block's keys are asked for, since the hardware cannot guess which page comes next. A single
query is bound by reading, and only slowed by asking.
"""

from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels import lanes
from engine.kernels.compiled import emitted
from engine.kernels.lanes import LANES, whole
from engine.kernels.rows import SIZE, loop

FAR = 2  # the cache that has room for a block ahead


def reader(b: Any, kind: Any) -> Any:
    """Reads sixteen numbers at a pointer into an array of numba type `kind` as float32."""
    if kind.dtype == types.float32:
        return lambda p: lanes.load(b, b.bitcast(p, lanes.VECTOR.as_pointer()))
    shorts = lanes.SHORTS.as_pointer()
    return lambda p: lanes.widen(b, lanes.load(b, b.bitcast(p, shorts), 2))


def stored(kind: Any) -> ir.Type:
    return lanes.FLOAT if kind.dtype == types.float32 else lanes.INT16


def _fold_together(b: Any, vectors: list[Any]) -> Any:
    """Lane i of the result is the sum of vector i's lanes."""
    width = LANES // 2
    while width:
        pick = [[], []]  # type: ignore[var-annotated]
        for lane in range(LANES):
            start, within = lane // (2 * width) * 2 * width, lane % (2 * width)
            second = LANES if within >= width else 0
            for half in range(2):
                pick[half].append(second + start + half * width + within % width)
        low, high = (ir.Constant(lanes.INTS, order) for order in pick)
        count = len(vectors) // 2
        vectors = [
            b.fadd(b.shuffle_vector(x, y, low), b.shuffle_vector(x, y, high))
            for x, y in zip(vectors[:count], vectors[count:], strict=True)
        ]
        width //= 2
    return vectors[0]


def scores(rows: int) -> Any:
    """The intrinsic that takes 16 / `rows` keys against `rows` queries.

    out[out_at + r · out_stride + j] = Σ_d q[q_at + r · q_stride + d] · k[places[at + j] · dim + d]
    over 16 · `vectors` d, where a place counts heads from the array's start, plus `head`; those at
    `places[ahead + j]` are asked for where rows > 1. `k` is float32 or bfloat16 bits (uint16).
    """
    keys = LANES // rows

    @emitted
    def score(
        context, q, q_at, q_stride, k, places, at, ahead, head, dim, vectors,
        out, out_at, out_stride,
    ):  # fmt: skip
        signature = types.void(
            q, SIZE, SIZE, k, places, SIZE, SIZE, SIZE, SIZE, SIZE, out, SIZE, SIZE
        )

        def emit(target, b, signature, args):
            q, q_at, q_stride, k, places, at, ahead, head, dim, vectors, out, out_at, step = args
            kinds = signature.args
            number = stored(kinds[3])
            read_key, read = reader(b, kinds[3]), reader(b, kinds[0])
            q = lanes.address(target, b, kinds[0], q, q_at, lanes.FLOAT)
            k = lanes.address(target, b, kinds[3], k, whole(0), number)
            queries = [lanes.at(b, q, b.mul(q_stride, whole(r))) for r in range(rows)]

            def starts(first):
                from_ = lanes.address(target, b, kinds[4], places, first, lanes.INT64)
                found = [b.load(lanes.at(b, from_, whole(j))) for j in range(keys)]
                return [lanes.at(b, k, b.mul(b.add(place, head), dim)) for place in found]

            here = starts(at)
            following = starts(ahead) if rows > 1 else []

            def body(i, had):
                offset = b.mul(i, whole(LANES))
                asked = [read(lanes.at(b, start, offset)) for start in queries]
                found = [read_key(lanes.at(b, start, offset)) for start in here]
                for start in following:
                    lanes.fetch(b, lanes.at(b, start, offset), FAR)
                return [
                    lanes.fma(b, asked[i // keys], found[i % keys], had[i]) for i in range(LANES)
                ]

            total = _fold_together(b, loop(b, vectors, [lanes.zeros()] * LANES, body))
            out = lanes.address(target, b, kinds[10], out, out_at, lanes.FLOAT)
            for r in range(rows):
                order = ir.Constant(
                    ir.VectorType(lanes.INT32, keys), [*range(r * keys, r * keys + keys)]
                )
                lanes.store(
                    b,
                    b.shuffle_vector(total, total, order),
                    lanes.at(b, out, b.mul(step, whole(r))),
                )
            return target.get_dummy_value()

        return signature, emit

    return score


def weighted(rows: int, panels: int) -> Any:
    """The intrinsic that adds up weighted values for `rows` queries and 16 · `panels` columns.

    out[r] = out[r] · old[old_at + r] + Σ_j p[r, j] · v[places[at + j] · dim + column …] over
    `count` values; rows of p and out lie `_stride` apart, and out begins at the same column.
    """

    @emitted
    def weigh(
        context, p, p_at, p_stride, v, places, at, ahead, head, dim, column, count,
        old, old_at, out, out_at, out_stride,
    ):  # fmt: skip
        signature = types.void(
            p, SIZE, SIZE, v, places, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, old, SIZE, out, SIZE, SIZE
        )

        def emit(target, b, signature, args):
            p, p_at, p_stride, v, places, at, ahead, head, dim, column, count = args[:11]
            old, old_at, out, out_at, out_stride = args[11:]
            kinds = signature.args
            read, read_out = reader(b, kinds[3]), reader(b, kinds[13])
            p = lanes.address(target, b, kinds[0], p, p_at, lanes.FLOAT)
            v = lanes.address(target, b, kinds[3], v, column, stored(kinds[3]))
            here = lanes.address(target, b, kinds[4], places, at, lanes.INT64)
            following = lanes.address(target, b, kinds[4], places, ahead, lanes.INT64)
            old = lanes.address(target, b, kinds[11], old, old_at, lanes.FLOAT)
            out = lanes.address(target, b, kinds[13], out, b.add(out_at, column), lanes.FLOAT)
            weights = [lanes.at(b, p, b.mul(p_stride, whole(r))) for r in range(rows)]
            outs, start = [], []
            for index in range(rows * panels):
                r, c = divmod(index, panels)
                outs.append(lanes.at(b, out, b.add(b.mul(out_stride, whole(r)), whole(LANES * c))))
                scale = lanes.splat(b, b.load(lanes.at(b, old, whole(r))))
                start.append(b.fmul(read_out(outs[-1]), scale))

            def body(j, had):
                value, later = (
                    lanes.at(b, v, b.mul(b.add(b.load(lanes.at(b, found, j)), head), dim))
                    for found in (here, following)
                )
                values = []
                for c in range(panels):
                    values.append(read(lanes.at(b, value, whole(LANES * c))))
                    if rows > 1:
                        lanes.fetch(b, lanes.at(b, later, whole(LANES * c)), FAR)
                found = []
                for r in range(rows):
                    weight = lanes.splat(b, b.load(lanes.at(b, weights[r], j)))
                    found += [
                        lanes.fma(b, weight, x, had[r * panels + c]) for c, x in enumerate(values)
                    ]
                return found

            for value, place in zip(loop(b, count, start, body), outs, strict=True):
                lanes.store(b, value, place)
            return target.get_dummy_value()

        return signature, emit

    return weigh
