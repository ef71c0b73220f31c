"""Level of detail of the cache view: attention mass as one byte a page, of the chosen head."""

from typing import Any

import numpy as np

ALL = -1


def reduce(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """`frame` with `mass` (pages, or layers by heads by pages) summed over what is not chosen.

    `window`: layer and head, -1 for all of them. The result has `mass` as shares of the largest,
    0 to 255, and `layers` and `heads` to choose from (1 where the sample has none).
    """
    mass = frame.get("mass")
    if mass is None:
        return frame
    table = mass.reshape((1, 1, -1) if mass.ndim == 1 else mass.shape)
    if mass.ndim == 2:
        table = mass[:, None, :]
    layers, heads = table.shape[:2]
    layer, head = int(window.get("layer", ALL)), int(window.get("head", ALL))
    some = table[layer : layer + 1] if 0 <= layer < layers else table
    some = some[:, head : head + 1] if 0 <= head < heads else some
    total = np.nan_to_num(some.sum(axis=(0, 1)))
    most = float(total.max(initial=0.0))
    shares = np.sqrt(total / most) if most > 0 else np.zeros_like(total)
    out = {k: v for k, v in frame.items() if k != "mass"}
    return {**out, "mass": (shares * 255).astype(np.uint8), "layers": layers, "heads": heads}
