"""How far the engine stays under this machine's roofs, fitted to steps it has really taken.

In come steps read from a real run's log; out come the four calibration knobs of the modelled
executor: reached shares of bandwidth and peak, and what a step and a sequence cost beside them.
"""

from dataclasses import dataclass
from itertools import product
from operator import itemgetter

import numpy as np

from engine.inference.executors.costs.forward_work import Shape
from engine.inference.executors.costs.operator_step_cost import CurvedCost
from engine.inference.executors.costs.step_cost import StepCost
from engine.inference.executors.modelled import Modelled
from workbench.real_and_modelled.steps_taken import Taken

MOST = 1.25
SHARES = np.geomspace(0.02, MOST, 29)  # reached shares that are tried
NEAR = np.geomspace(SHARES[0] / SHARES[1], SHARES[1] / SHARES[0], 9)  # then of the best, about it
ROUNDS = 4  # of reweighting


@dataclass(frozen=True, slots=True)
class Fit:
    """Calibrated knobs, and the error they leave on the very steps they were fitted to."""

    knobs: dict[str, float]
    steps: int
    left: float  # median of |modelled ÷ real - 1|


def fit(taken: list[Taken], cost: StepCost) -> Fit:
    """Reached shares and overheads that bring modelled step times nearest to real ones.

    A real time is taken to scatter in proportion to the modelled one (the gamma family), so that
    the model aims at the mean and sums of steps come out right. Every pair of shares is tried, then
    those about the best; for each, the two overheads follow by reweighted least squares, neither
    below 0.
    """
    shapes = [cost.shape(one.new_B, one.context_B, one.rows) for one in taken]
    real_S = np.array([one.seconds for one in taken])
    sequences_S = np.array([len(one.new_B) for one in taken], float)
    work_SO, moved_SO, launch = _parts(cost, shapes)
    peak, bandwidth = cost.device.peak(cost.dtype), cost.device.bandwidth
    together = np.add if cost.fused else np.maximum  # as `StepCost.describe` has it

    def tried(memory: float, arithmetic: float) -> tuple[float, dict[str, float], np.ndarray]:
        """Deviance, knobs, and modelled ÷ real - 1 of each step."""
        roofs_SO = together(work_SO / (arithmetic * peak), moved_SO / (memory * bandwidth))
        base_S = roofs_SO.sum(1) + launch
        per_step, per_sequence = _overheads(base_S, sequences_S, real_S)
        ratio_S = real_S / (base_S + per_step + per_sequence * sequences_S)
        knobs = {"per_step": per_step, "per_sequence": per_sequence}
        knobs |= {"memory": memory, "arithmetic": arithmetic}
        return float((ratio_S - 1 - np.log(ratio_S)).mean()), knobs, 1 / ratio_S - 1

    def best(memories: np.ndarray, shares: np.ndarray) -> tuple[dict[str, float], np.ndarray]:
        pairs = product(memories.tolist(), shares.tolist())
        _, knobs, error_S = min((tried(*pair) for pair in pairs), key=itemgetter(0))
        return knobs, error_S

    knobs, _ = best(SHARES, SHARES)
    near = (np.minimum(MOST, knobs[share] * NEAR) for share in ("memory", "arithmetic"))
    knobs, error_S = best(*near)
    return Fit(knobs, len(taken), float(np.median(np.abs(error_S))))


def _parts(cost: StepCost, shapes: list[Shape]) -> tuple[np.ndarray, np.ndarray, float]:
    """Flops that time goes by and bytes of each operation of each step, and a step's launches in
    seconds."""
    told = [cost.describe(shape) for shape in shapes]
    work_SO = np.array([cost.asked(shape) for shape in shapes])
    moved_SO = np.array([[op.bytes for op in ops] for ops in told])
    return work_SO, moved_SO, sum(cost.launches)


def _overheads(
    base_S: np.ndarray, sequences_S: np.ndarray, real_S: np.ndarray
) -> tuple[float, float]:
    """Seconds a step and a sequence that best make up what `base_S` lacks of `real_S`."""
    both = np.zeros(2)
    weight_S = 1 / np.maximum(base_S, real_S.mean())
    for _ in range(ROUNDS):
        columns_S2 = np.stack([weight_S, weight_S * sequences_S], 1)
        both = _least_squares(columns_S2, (real_S - base_S) * weight_S)
        weight_S = 1 / (base_S + both[0] + both[1] * sequences_S)
    return float(both[0]), float(both[1])


def _least_squares(columns_S2: np.ndarray, target_S: np.ndarray) -> np.ndarray:
    """Two coefficients, neither below 0."""
    both, *_ = np.linalg.lstsq(columns_S2, target_S, rcond=None)
    if both.min() >= 0:
        return both
    alone = np.maximum(0.0, columns_S2.T @ target_S / (columns_S2**2).sum(0))
    left = ((target_S[:, None] - alone * columns_S2) ** 2).sum(0)
    kept = int(left.argmin())
    return np.where(np.arange(2) == kept, alone, 0.0)


def errors(taken: list[Taken], cost: StepCost | CurvedCost, choice: Modelled) -> np.ndarray:
    """modelled ÷ real - 1 of every step."""
    found = []
    for one in taken:
        seconds, _, _ = cost.total(cost.shape(one.new_B, one.context_B, one.rows))
        seconds += choice.per_step + choice.per_sequence * len(one.new_B)
        found.append(seconds / one.seconds - 1)
    return np.array(found)
