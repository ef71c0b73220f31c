"""A downhill simplex (Nelder and Mead, Computer Journal 1965): a minimum without derivatives."""

from collections.abc import Callable

import numpy as np

ROUNDS = 500


def lowest(
    value: Callable[[np.ndarray], float],
    start: np.ndarray,
    step: float = 0.25,
    rounds: int = ROUNDS,
) -> np.ndarray:
    """The point a simplex ends at that begins at `start` with sides of `step`."""
    points = [start, *(start + step * axis for axis in np.eye(len(start)))]
    heights = [value(point) for point in points]
    for _ in range(rounds):
        order = np.argsort(heights)
        points, heights = [points[i] for i in order], [heights[i] for i in order]
        if heights[-1] - heights[0] < 1e-7:
            break
        middle = np.mean(points[:-1], axis=0)
        mirrored = 2 * middle - points[-1]
        height = value(mirrored)
        if height < heights[0]:
            further = 3 * middle - 2 * points[-1]
            beyond = value(further)
            best = (further, beyond) if beyond < height else (mirrored, height)
            points[-1], heights[-1] = best
        elif height < heights[-2]:
            points[-1], heights[-1] = mirrored, height
        else:
            inside = (middle + points[-1]) / 2
            height = value(inside)
            if height < heights[-1]:
                points[-1], heights[-1] = inside, height
            else:
                points = [points[0], *((points[0] + p) / 2 for p in points[1:])]
                heights = [heights[0], *(value(p) for p in points[1:])]
    return points[int(np.argmin(heights))]
