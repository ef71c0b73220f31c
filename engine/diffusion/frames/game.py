"""Catch: a game of 8 × 8 cells whose every next frame is known, and a player who holds keys.

A paddle of two cells moves along the lowest row as it is told, an item falls a row a frame. Below
the lowest row it is gone, and a new one stands in the highest row, in any column alike: the only
chance there is. A frame is two planes of cells, paddle and item, each 0 or 1.
"""

import numpy as np

SIZE, WIDE = 8, 2  # cells a side; of the paddle
ACTIONS = ("left", "stay", "right")
Place = tuple[int, int, int]  # paddle's left column; item's row and column


def drawn(place: Place) -> np.ndarray:
    """A frame, uint8 [2, SIZE, SIZE]."""
    paddle, row, column = place
    frame = np.zeros((2, SIZE, SIZE), np.uint8)
    frame[0, SIZE - 1, paddle : paddle + WIDE] = 1
    frame[1, row, column] = 1
    return frame


def place_of(frame: np.ndarray) -> Place | None:
    """Where paddle and item stand; None of what is no frame of the game."""
    items, cells = np.argwhere(frame[1]), np.flatnonzero(frame[0, SIZE - 1])
    if len(items) != 1 or not len(cells):
        return None
    found = int(cells[0]), int(items[0, 0]), int(items[0, 1])
    if found[0] > SIZE - WIDE or not np.array_equal(drawn(found), frame):
        return None
    return found


def following(place: Place, action: int) -> list[Place]:
    """Every place that may come next, each equally likely."""
    paddle, row, column = place
    paddle = min(max(paddle + action - 1, 0), SIZE - WIDE)
    if row + 1 < SIZE:
        return [(paddle, row + 1, column)]
    return [(paddle, 0, new) for new in range(SIZE)]


def allowed(before: np.ndarray, action: int, after: np.ndarray) -> bool:
    """Whether the game may show `after` next; after what is no frame, any frame is allowed."""
    place, came = place_of(before), place_of(after)
    return came is not None and (place is None or came in following(place, action))


def keys(count: int, held: float, chance: np.random.Generator) -> np.ndarray:
    """Actions of `count` frames: with probability `held` the last once more, else any of all."""
    found = chance.integers(len(ACTIONS), size=count)
    again = chance.random(count) < held
    for at in range(1, count):
        if again[at]:
            found[at] = found[at - 1]
    return found


def film(actions: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """The game itself: uint8 [F, 2, SIZE, SIZE]; the first action has no effect."""
    paddle, (row, column) = chance.integers(SIZE - WIDE + 1), chance.integers(SIZE, size=2)
    place = int(paddle), int(row), int(column)
    shown = [drawn(place)]
    for action in actions[1:]:
        may = following(place, int(action))
        place = may[int(chance.integers(len(may)))]
        shown.append(drawn(place))
    return np.stack(shown)
