"""Random numbers that depend on (seed, position) and nothing else, so batches cannot matter."""

GOLDEN = 0x9E3779B97F4A7C15
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # splitmix64's own (Steele et al., 2014)
MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """One splitmix64 output: 64 well-mixed bits of `value`."""
    value = (value + GOLDEN) & MASK
    value = ((value ^ (value >> 30)) * FIRST) & MASK
    value = ((value ^ (value >> 27)) * SECOND) & MASK
    return value ^ (value >> 31)


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) for the token at `position` of a request with `seed`."""
    return (mix(mix(seed) ^ position) >> 11) * 2.0**-53


def seed_of(run: int, number: int) -> int:
    """The seed of a request that brings none: of the run and its place in it. Fits an int64."""
    return mix(mix(run) ^ number) >> 1
