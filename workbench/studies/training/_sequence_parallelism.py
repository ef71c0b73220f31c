"""What ranks hold that split a sequence: the longest one, the largest batch, counted on shapes."""

from engine.core.config import update
from engine.training.context_parallel.config import SequenceConfig
from engine.training.context_parallel.memory_fit import longest
from engine.training.context_parallel.policies.ring_self_attention import RingSelfAttention
from workbench.study import Changes, Figure, Outcome, RunConfig

# The attention of BERT Base, with which the paper measures: 12 heads of 64.
HEADS, DIM, RANKS = 12, 64, 64
GROWN = 8  # ranks, up to which the batch is to grow
MANY, FURTHER = 32, 27.0  # ranks, and how much further they reach than one, in the paper
BATCH, LENGTH = 13.7, 3.0  # times those of tensor parallelism at 64 devices, in the paper
ROOM = 2**30  # bytes; a limit, not that of the paper's devices, which hold weights too


def grows(config: SequenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Sequences of 1024 tokens that fit a gigabyte, and the longest one, at 1 rank and at 8."""
    return grown(config, GROWN, run_config, fast)


def grown(config: SequenceConfig, ranks: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same at 1 rank and at so many."""
    base: Changes = {"kv_heads": HEADS, "share": 1, "dim": DIM, "causal": False, "batch": 1}
    found: dict[str, list[int]] = {"tokens": [], "batch": []}
    for n in (1, int(ranks)):
        one = update(config, {**base, "ranks": n, "tokens": 1024})
        for name, sizes in found.items():
            sizes.append(longest(one, ROOM, name))
    (short, long), (few, many) = found["tokens"], found["batch"]
    wider, longer = 15 / 16 * ranks, 0.95 * ranks**0.5
    return Outcome(
        f"{ranks:g} ranks hold at least {wider:g}× the batch and 0.95 √{ranks:g} = {longer:.1f}× "
        "the length of one",
        f"{many / few:.1f}× ({few} to {many}) and {long / short:.2f}× ({short} to {long} tokens)",
        many >= wider * few and long >= longer * short,
        figure=Figure.exact(many / few, "×"),
        needed=wider,
    )


def past_heads(config: SequenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The batch of 64 ranks that split the sequence against 12 that split the heads, their end."""
    return at_ranks(config, RANKS, run_config, fast)


def at_ranks(config: SequenceConfig, ranks: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of so many ranks, at least as many as heads."""
    batch = _beyond(config, int(ranks), "batch", fast)
    return Outcome(
        f"{BATCH}× the batch",
        f"{batch:.1f}× of attention alone; {int(ranks)} ranks over {HEADS} heads are "
        f"{ranks / HEADS:.1f}×",
        batch >= BATCH,
        figure=Figure.exact(batch, "×"),
        needed=BATCH,
    )


def longer(config: SequenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The length of 64 ranks that split the sequence against 12 that split the heads."""
    return longer_at(config, RANKS, run_config, fast)


def longer_at(config: SequenceConfig, ranks: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of so many ranks, at least as many as heads."""
    length = _beyond(config, int(ranks), "tokens", fast)
    return Outcome(
        f"{LENGTH}× the length",
        f"{length:.2f}× of attention alone; √({int(ranks)}/{HEADS}) is "
        f"{(ranks / HEADS) ** 0.5:.2f}×",
        length >= LENGTH,
        figure=Figure.exact(length, "×"),
        needed=LENGTH,
    )


def _beyond(config: SequenceConfig, ranks: int, what: str, fast: bool) -> float:
    """What fits ranks that split the sequence, over what fits one rank with a head of its own."""
    base: Changes = {"share": 1, "dim": DIM, "causal": False, "batch": 1, "tokens": 12 * ranks}
    split = update(config, {**base, "kv_heads": HEADS, "ranks": ranks})
    whole = update(config, {**base, "kv_heads": 1, "ranks": 1, "attention": RingSelfAttention()})
    room = ROOM / 4 if fast else ROOM
    return longest(split, room, what) / longest(whole, room, what)


def sparse(config: SequenceConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """The longest sequence of 32 ranks over that of one, where only a block's scores are held."""
    return in_room(config, ROOM / (64 if fast else 1), run_config, fast)


def in_room(config: SequenceConfig, room: float, run_config: RunConfig, fast: bool) -> Outcome:
    """The same of ranks that may hold so many bytes each."""
    linear = {"attention": "ring"} if config.attention == RingSelfAttention() else {}
    base: Changes = {**linear, "kv_heads": HEADS, "share": 1, "dim": DIM, "causal": False,
                     "batch": 1, "tokens": 64}  # fmt: skip
    many, one = (longest(update(config, {**base, "ranks": n}), room) for n in (MANY, 1))
    return Outcome(
        f"{MANY} ranks hold at least {FURTHER:g}× the length of one",
        f"{many / one:.1f}× ({one:,} to {many:,} tokens)",
        many >= FURTHER * one,
        figure=Figure.exact(many / one, "×"),
        needed=FURTHER,
    )
