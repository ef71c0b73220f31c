"""How far the engine stays under this machine's roofs, fitted to steps it has really taken.

In come steps read from a real run's log; out come the four calibration knobs of the modelled
executor: reached shares of bandwidth and peak, and what a step and a sequence cost beside them.
"""

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from engine.hardware.device import Device
from engine.inference.executors.modelled import Modelled
from engine.inference.step_cost import Shape, StepCost
from workbench.steps_taken import Taken

SHARES = np.geomspace(0.02, 1.25, 29)  # reached shares that are tried


@dataclass(frozen=True, slots=True)
class Fit:
    """Calibrated knobs, and the error they leave on the very steps they were fitted to."""

    knobs: dict[str, float]
    steps: int
    left: float  # median of |modelled ÷ real - 1|


def fit(taken: list[Taken], cost: StepCost) -> Fit:
    """Reached shares and overheads that bring modelled step times nearest to real ones.

    Every pair of shares is tried; for each, the two overheads follow by least squares on relative
    errors, neither below 0. The pair with the smallest mean absolute relative error is taken.
    """
    shapes = [cost.shape(one.new_B, one.context_B, one.rows) for one in taken]
    real_S = np.array([one.seconds for one in taken])
    sequences_S = np.array([len(one.new_B) for one in taken], float)
    best: tuple[float, dict[str, float], np.ndarray] | None = None
    work_SO, moved_SO, launch = _parts(cost, shapes)
    peak, bandwidth = cost.device.peak(cost.dtype), cost.device.bandwidth
    for memory in SHARES:
        for arithmetic in SHARES:
            roofs_SO = np.maximum(work_SO / (arithmetic * peak), moved_SO / (memory * bandwidth))
            base_S = roofs_SO.sum(1) + launch
            per_step, per_sequence = _overheads(real_S - base_S, sequences_S, real_S)
            error_S = (base_S + per_step + per_sequence * sequences_S) / real_S - 1
            size = float(np.abs(error_S).mean())
            if best is None or size < best[0]:
                knobs = {"per_step": per_step, "per_sequence": per_sequence}
                knobs |= {"memory": float(memory), "arithmetic": float(arithmetic)}
                best = size, knobs, error_S
    assert best is not None
    return Fit(best[1], len(taken), float(np.median(np.abs(best[2]))))


def _parts(cost: StepCost, shapes: list[Shape]) -> tuple[np.ndarray, np.ndarray, float]:
    """Flops and bytes of each operation of each step, and a step's launches in seconds."""
    told = [cost.describe(shape) for shape in shapes]
    work_SO = np.array([[op.flops for op in ops] for ops in told])
    moved_SO = np.array([[op.bytes for op in ops] for ops in told])
    return work_SO, moved_SO, sum(op.launch for op in cost.operations)


def _overheads(rest_S: np.ndarray, sequences_S: np.ndarray, real_S: np.ndarray) -> tuple:
    """Seconds a step and a sequence that best make up `rest_S`, weighing relative errors."""
    columns = np.stack([np.ones_like(real_S), sequences_S], 1) / real_S[:, None]
    target = rest_S / real_S
    both, *_ = np.linalg.lstsq(columns, target, rcond=None)
    if both.min() >= 0:
        return float(both[0]), float(both[1])
    alone = [max(0.0, float(c @ target / (c @ c))) for c in columns.T]
    left = [float(((target - a * c) ** 2).sum()) for a, c in zip(alone, columns.T, strict=True)]
    return (alone[0], 0.0) if left[0] <= left[1] else (0.0, alone[1])


def errors(taken: list[Taken], cost: StepCost, choice: Modelled) -> np.ndarray:
    """modelled ÷ real - 1 of every step."""
    found = []
    for one in taken:
        seconds, _, _ = cost.total(cost.shape(one.new_B, one.context_B, one.rows))
        seconds += choice.per_step + choice.per_sequence * len(one.new_B)
        found.append(seconds / one.seconds - 1)
    return np.array(found)


def bare(device: Device) -> Device:
    """The device at its measured roofs, every one reached in full."""
    return device.model_copy(update={"efficiency": MappingProxyType({})})
