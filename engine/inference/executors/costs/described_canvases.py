"""Blocks of masks on a described device: what their texts ask of a step, and that nothing is known
of any place.

Shape letters: B sequences, C of them with masks.
"""

import numpy as np

from engine.inference.requests.step import Step

SURE = (1.0, 0.0)  # of each place: no model knows better, and all are alike


def asked(step: Step) -> tuple[np.ndarray, np.ndarray, int]:
    """new_B, contexts_B and rows of logits, of padding too.

    In a text with masks every token sees all others: as many pairs as of a prompt of its length
    behind half as many tokens. Logits are wanted at each place of its block.
    """
    contexts_B, own_C = step.contexts_B.copy(), step.queries_B[step.canvases_C]
    contexts_B[step.canvases_C] += (own_C - 1) // 2
    alone = np.ones(step.padding, np.int32)
    new_B, contexts_B = np.append(step.queries_B, alone), np.append(contexts_B, alone)
    return new_B, contexts_B, len(step.sample_rows_S) + int(_places(step).sum())


def steering(step: Step) -> tuple[np.ndarray, np.ndarray, int] | None:
    """The same of the second pass of guided texts, behind their negative prompts."""
    rows_C = () if step.canvases_C is None else step.rows_B[step.canvases_C].tolist()
    found = [step.requests[row] for row in rows_C]
    lengths = [
        (len(one.negative), len(one.tokens) - len(one.prompt))
        for one in found
        if one.negative is not None and one.sampling.guidance != 1.0
    ]
    if not lengths:
        return None
    new_B = np.array([sum(both) for both in lengths])
    return new_B, new_B + (new_B - 1) // 2, sum(places for _, places in lengths)


def said(step: Step) -> dict[int, np.ndarray]:
    """By row of the persistent batch what may stand at each place of its block."""
    if step.canvases_C is None:
        return {}
    rows_C, places_C = step.rows_B[step.canvases_C].tolist(), _places(step).tolist()
    return {row: np.tile(SURE, (count, 1)) for row, count in zip(rows_C, places_C, strict=True)}


def _places(step: Step) -> np.ndarray:
    """Places of the block of each text with masks."""
    rows_C = step.rows_B[step.canvases_C]
    return step.rows.known[rows_C] - step.rows.prompt[rows_C]
