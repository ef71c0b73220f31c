"""Decode on the modelled processors of a described device, on the virtual clock."""

from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.hardware import Device, device
from engine.hardware.roofs import roofs_of
from engine.kernels.operator import Arguments
from engine.kernels.paged_attention.plan import Plan
from engine.kernels.paged_attention.workers import Shape, Times, Workers
from engine.kernels.work_queue import first_free


class Modelled(Workers):
    """Each reads at its share of the device's reached bandwidth and multiplies at its share of the
    reached peak, whichever takes longer."""

    real: ClassVar[bool] = False
    kind: Literal["modelled"] = "modelled"
    device: str = knob("a100-sxm-80gb", "data sheet of the device")
    count: int = knob(0, "processors; 0: as many as the device has", low=0, high=4096)
    item_cost: float = knob(
        5e-7,
        "seconds an item costs beside its keys: queries loaded, pipeline filled (assumed)",
        low=0.0, high=1e-4, unit="s",
    )  # fmt: skip
    reach: float = knob(
        1.0,
        "how many times its share of bandwidth one processor can use while others are idle",
        low=1.0, high=16.0,
    )  # fmt: skip

    def number(self) -> int:
        found = self.count or device(self.device).units
        if not found:
            raise BadInput(
                f"workers.device {self.device}: its sheet counts none; set workers.count"
            )
        return found

    def arguments(self, contexts: list[int], shape: Shape, seed: int) -> None:
        return None

    def error(self, made: Plan, given: Arguments | None, rescale: bool) -> None:
        return None

    def work(self, made: Plan, shape: Shape, given: Arguments | None, rescale: bool) -> Times:
        on, workers = device(self.device), self.number()
        keys_I = made.end_I - made.begin_I
        written_I = np.where(made.part_I >= 0, shape.part_bytes, 0)
        cost_I = self.item_cost + self._seconds(
            on, keys_I * shape.key_bytes + written_I, keys_I * shape.key_flops, shape.dtype
        )
        item_I2, worker_I = self._items(made, cost_I, on.launch)
        parts_M = made.parts_M2[:, 1] - made.parts_M2[:, 0]
        cost_M = self.item_cost + self._seconds(
            on, (parts_M + 1) * shape.part_bytes, 0 * parts_M, shape.dtype
        )
        free_W = np.zeros(workers)
        np.maximum.at(free_W, worker_I, item_I2[:, 1])
        merge_M2, merger_M = np.zeros((len(cost_M), 2)), np.zeros(len(cost_M), np.int64)
        place_P = np.flatnonzero(made.part_I >= 0)  # item of each part
        if len(cost_M) and not made.fused:  # a kernel of its own, after all items
            free_W[:] = free_W.max() + on.launch
        for merge, (first, last) in enumerate(made.parts_M2):
            items = place_P[first:last]
            worker = int(worker_I[items[0]]) if made.fused else int(free_W.argmin())
            begin = max(free_W[worker], item_I2[items, 1].max() if made.fused else 0.0)
            free_W[worker] = begin + cost_M[merge]
            merge_M2[merge], merger_M[merge] = (begin, free_W[worker]), worker
        return Times(item_I2, worker_I, merge_M2, merger_M)

    def _seconds(
        self, on: Device, bytes_N: np.ndarray, flops_N: np.ndarray, dtype: str
    ) -> np.ndarray:
        """How long one processor takes for work of so many bytes and flops."""
        share = self.number()
        memory = bytes_N * share / on.reached("bandwidth")
        return np.maximum(memory, flops_N * share / on.reached(dtype))

    def _items(self, made: Plan, cost_I: np.ndarray, begin: float) -> tuple[np.ndarray, np.ndarray]:
        """Begin and end of every item, and who did it.

        Costs are seconds at an equal share of bandwidth. While some have nothing left to do, the
        others run faster, up to `reach` times, all of them alike.
        """
        workers = self.number()
        runs = [cost_I[a:b].tolist() for a, b in pairwise(made.first_K1.tolist()) if a < b]
        dealt = first_free(
            runs, workers, begin=begin, pace=lambda busy: min(self.reach, workers / busy)
        )
        item_I2 = np.array([each[1:] for each in dealt]).reshape(-1, 2)
        return item_I2, np.array([each.worker for each in dealt], np.int64)

    def facts(self) -> dict[str, Any]:
        on = device(self.device)
        return {"grade": "modelled", "device": self.device, "roofs": roofs_of(on)}
