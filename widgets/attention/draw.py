"""The drawing of attention: a grid of heads, and one head's tiles fetched as they come into sight.

Its frame is made by `frame`, from plain numbers and arrays; where the tiles are is an address.
"""

from typing import Any

import numpy as np

from widgets.canvas.drawing import CanvasDrawing

QUESTION = "Which tokens does each token look at?"
HEIGHT = 640  # pixels


def draw() -> CanvasDrawing:
    """An empty drawing. It tells of a page by `chosen` ("page:12"), of a head by `window`."""
    return CanvasDrawing("attention", height=HEIGHT)


def waits(line: str) -> dict[str, Any]:
    """The frame of a drawing that has nothing to show yet; `line` says why."""
    return {"empty": line}


def frame(
    address: str, texts: list[str], thumbs: np.ndarray, sinks: list[list[tuple[int, float]]],
    *, top: int, pages: tuple[tuple[int, int], ...], page_size: int, sampled: int,
) -> dict[str, Any]:  # fmt: skip
    """One request's frame.

    `thumbs`: uint8 [layers, heads, side, side]; `sinks`: (token, share) for each of them; `top`:
    the coarsest level of tiles; `pages`: (first position, page) of those it held.
    """
    layers, heads, side, _ = thumbs.shape
    strong = sum(share >= 0.3 for row in sinks for _, share in row)
    positions = {key for row in sinks for key, share in row if share >= 0.3}
    most = max(
        positions, key=lambda k: sum(key == k for row in sinks for key, _ in row), default=-1
    )
    named = f"{texts[most]!r} ({most})"
    return {
        "empty": "",
        "address": address,
        "tokens": len(texts),
        "texts": texts,
        "layers": layers,
        "heads": heads,
        "side": side,
        "thumbs": np.ascontiguousarray(thumbs).reshape(-1),
        "sink_at": np.array([key for row in sinks for key, _ in row], np.int32),
        "sink_share": np.array([share for row in sinks for _, share in row], np.float32),
        "top": top,
        "page_start": np.array([start for start, _ in pages], np.int32),
        "page_number": np.array([page for _, page in pages], np.int32),
        "page_size": page_size,
        "sampled": sampled,
        "figures": [
            ["tokens", f"{len(texts):,}"],
            ["layers × heads", f"{layers} × {heads}"],
            ["heads with a sink (30 % to one token)", f"{strong} of {layers * heads}"],
            *([["the sink of most of them", named]] if most >= 0 else []),
        ],
    }
