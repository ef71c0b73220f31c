"""Search for the largest size whose cost stays within a limit, in few evaluations."""

import math
from collections.abc import Callable


def largest_within(
    limit: float, cost: Callable[[int], float], most: int, *, first: int, part: int
) -> int:
    """The largest count from 1 to `most` with `cost(count) <= limit`, to one part in `part`; 0
    where none is.

    `cost` grows about as a power of the count, so each guess goes along the last slope, beginning
    at `first`. What is returned was evaluated, and so was a count at most a part larger that
    exceeds the limit.
    """
    low, high = 0, most + 1  # what fits, and what does not
    tried, power, guess = (0, 0.0), 1.0, min(most, first)
    while high - low > max(1, low // part):
        size = cost(guess)
        low, high = (guess, high) if size <= limit else (low, guess)
        if tried[0] and tried[0] != guess:
            power = math.log(size / tried[1]) / math.log(guess / tried[0])
        tried = (guess, float(size))
        aim = guess * (limit / size) ** (1 / max(power, 0.5))
        # A little beside the aim closes the other side of the bracket.
        beside = 0.512 / part
        aim = aim * (1 + beside) if guess == low else aim * (1 - beside)
        inside = low < aim < high
        guess = int(aim) if inside and int(aim) > low else (low + high) // 2
    return low
