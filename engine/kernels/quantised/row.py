"""The product of a single row with panels of codes side by side: it waits for memory, not for sums.

A panel of few bits is a short stream, which the processor's own foresight finds late and loses at
its end. So while a panel's codes and scales are multiplied, those of a later panel are asked for,
and outputs stay in registers over all groups. The sums are the tile's own, bit for bit.
"""

from dataclasses import dataclass
from typing import Any

from numba import types

from engine.kernels import lanes
from engine.kernels.compiled import emitted
from engine.kernels.lanes import LANES, whole
from engine.kernels.quantised.formats import Format, format_of
from engine.kernels.quantised.tile import Place, panel_at


@dataclass
class _Panels:
    """Panels side by side, as LLVM values: pointers to the first one's numbers and strides."""

    count: int
    of: Format
    words: int
    x: Any
    sums: Any  # Σ x of each group
    codes: Any
    step: Any  # words between panels
    scales: Any
    by_panel: Any
    zeros: Any
    by_zero: Any
    zero_by_panel: Any
    ahead: Any  # panels from each to the one asked for

    def add_group(self, b: Any, group: Any, skipped: Any, blocks: Any, had: list[Any]) -> list[Any]:
        """`had` and the product of one group, which is `skipped` blocks on; asks for the later."""
        depth = 32 * self.words // self.of.bits
        codes = lanes.at(b, self.codes, b.mul(skipped, whole(self.words * LANES)))
        place = Place(
            [lanes.at(b, self.x, b.mul(skipped, whole(depth)))],
            [lanes.at(b, codes, b.mul(self.step, whole(p))) for p in range(self.count)],
            self.words, self.of, b.mul(self.step, self.ahead),
        )  # fmt: skip
        found = place.sums(b, blocks)
        less = b.fneg(lanes.splat(b, b.load(lanes.at(b, self.sums, group))))
        scales = lanes.at(b, self.scales, b.mul(group, whole(LANES)))
        zeros = lanes.at(b, self.zeros, b.mul(group, self.by_zero))
        total = []
        for p in range(self.count):
            later = b.mul(self.by_panel, b.add(self.ahead, whole(p)))
            lanes.fetch(b, lanes.at(b, scales, later))
            this = lanes.fma(b, less, panel_at(b, zeros, self.zero_by_panel, p), found[p])
            total.append(lanes.fma(b, panel_at(b, scales, self.by_panel, p), this, had[p]))
        return total

    def add(self, b: Any, in_panel: Any, in_group: Any, first: list[Any]) -> list[Any]:
        """`first` and the products of all groups."""

        def turn(group: Any, had: list[Any]) -> list[Any]:
            skipped, *sums = had
            left = b.sub(in_panel, skipped)
            blocks = b.select(b.icmp_signed("<", left, in_group), left, in_group)
            total = self.add_group(b, group, skipped, blocks, sums)
            return [b.add(skipped, in_group), *total]

        groups = b.sdiv(b.add(in_panel, b.sub(in_group, whole(1))), in_group)
        return lanes.counted(b, groups, [whole(0), *first], turn)[1:]


def row(panels: int) -> Any:
    """The numba intrinsic: y += Σ over groups of scale · (Σ x · value - zero · Σ x), for one row.

    Arguments: x, x_at, blocks (its element type is the format), block_at, in_panel, in_group
    (blocks of a panel and of a group), scales and scale_at, by_panel (elements between panels),
    zeros and zero_at, by_zero (elements between groups, 0 for none) and zero_by_panel, sums (Σ x of
    each group), y, y_at, ahead (panels from each to the one asked for; 0 asks for nothing new).
    """

    @emitted
    def multiply_add(
        context, x, x_at, blocks, block_at, in_panel, in_group, scales, scale_at, by_panel, zeros,
        zero_at, by_zero, zero_by_panel, sums, y, y_at, ahead,
    ):  # fmt: skip
        n = types.int64
        signature = types.void(x, n, blocks, n, n, n, scales, n, n, zeros, n, n, n, sums, y, n, n)

        def emit(target, b, signature, args):
            (x, x_at, blocks, block_at, in_panel, in_group, scales, scale_at, by_panel, zeros,
             zero_at, by_zero, zero_by_panel, sums, y, y_at, ahead) = args  # fmt: skip
            kinds = signature.args

            def start(number, array, at, kind=lanes.FLOAT):
                return lanes.address(target, b, kinds[number], array, at, kind)

            [(name, field)] = kinds[2].dtype.fields.items()
            words, y = field.type.shape[0], start(14, y, y_at)
            side_by_side = _Panels(
                panels, format_of(name), words, start(0, x, x_at), start(13, sums, whole(0)),
                start(2, blocks, block_at, lanes.INT32), b.mul(in_panel, whole(words * LANES)),
                start(6, scales, scale_at), by_panel, start(9, zeros, zero_at), by_zero,
                zero_by_panel, ahead,
            )  # fmt: skip
            first = [panel_at(b, y, whole(LANES), p) for p in range(panels)]
            for p, value in enumerate(side_by_side.add(b, in_panel, in_group, first)):
                lanes.store(b, value, lanes.at(b, y, whole(LANES * p)))
            return target.get_dummy_value()

        return signature, emit

    return multiply_add
