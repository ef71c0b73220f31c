"""A pipeline plan as data: which rank does which pass of which microbatch, in what order.

An action is a stage, a kind and a microbatch, written `2F0`; a plan is a line of actions for each
rank. Running, timing, checking and drawing are readers of the same value. The notation is the one
of PyTorch's `distributed.pipelining`, with `STEP` for the optimiser added.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import msgspec

from engine.core.errors import BadInput


class Kind(StrEnum):
    """What an action does with its stage."""

    F = "F"  # forward
    B = "B"  # the whole backward: I, then W
    I = "I"  # backward for the input: what the stage before waits for
    W = "W"  # backward for the weights: nobody waits for it but the optimiser
    SEND_F = "SEND_F"  # the stage's output leaves
    RECV_F = "RECV_F"  # the stage's input arrives
    SEND_B = "SEND_B"  # the gradient of the stage's input leaves
    RECV_B = "RECV_B"  # the gradient of the stage's output arrives
    REDUCE_GRAD = "REDUCE_GRAD"  # all-reduce of the stage's gradients over its replicas
    UNSHARD = "UNSHARD"  # all-gather of the stage's sharded weights
    RESHARD = "RESHARD"  # the gathered weights go
    STEP = "STEP"  # the optimiser updates the stage


SENDS = {Kind.SEND_F: Kind.RECV_F, Kind.SEND_B: Kind.RECV_B}
RECEIVES = {receive: send for send, receive in SENDS.items()}
WHOLE = (Kind.REDUCE_GRAD, Kind.UNSHARD, Kind.RESHARD, Kind.STEP)  # of no single microbatch
NONE = -1  # the microbatch of an action that is of none
KINDS: dict[str, Kind] = {kind.value: kind for kind in Kind}
_LONGEST_FIRST = "|".join(sorted(KINDS, key=len, reverse=True))
_ACTION = re.compile(rf"([0-9]{{1,9}})({_LONGEST_FIRST})([0-9]{{0,9}})")
RANKS = 1 << 11  # that a plan may have
SPARSE = 1 << 16  # stages times microbatches that a plan may name without having their passes


class Action(msgspec.Struct, frozen=True, gc=False):
    """One thing a rank does for one of its stages."""

    stage: int
    kind: Kind
    microbatch: int = NONE

    def __str__(self) -> str:
        number = "" if self.microbatch == NONE else str(self.microbatch)
        return f"{self.stage}{self.kind.value}{number}"


def action(word: str) -> Action:
    """The action written as `word`, such as `2F0`. Raises BadInput."""
    found = _ACTION.fullmatch(word.strip())
    if found is None:
        raise BadInput(
            f"action {word[:40]!r}: write stage, kind and microbatch, such as 2F0 or 1W3"
        )
    stage, name, number = found.groups()
    kind = KINDS[name]
    if (number == "") != (kind in WHOLE):
        needs = "no microbatch" if kind in WHOLE else "a microbatch"
        raise BadInput(f"action {word[:40]!r}: {name} takes {needs}")
    return Action(int(stage), kind, int(number) if number else NONE)


@dataclass(frozen=True)
class Plan:
    """Actions of each rank, in the order the rank does them."""

    ranks: tuple[tuple[Action, ...], ...]

    @cached_property
    def rank_of(self) -> dict[int, int]:
        """Stage -> the rank that has it; of a stage on several ranks, the first."""
        found: dict[int, int] = {}
        for rank, actions in enumerate(self.ranks):
            for stage in {each.stage for each in actions}:
                found.setdefault(stage, rank)
        return found

    @cached_property
    def stages(self) -> int:
        return 1 + max(self.rank_of, default=-1)

    @cached_property
    def microbatches(self) -> int:
        return 1 + max((each.microbatch for rank in self.ranks for each in rank), default=-1)

    @cached_property
    def chunks(self) -> int:
        """The most stages any rank has."""
        return max(Counter(self.rank_of.values()).values(), default=0)

    @cached_property
    def lowered(self) -> bool:
        """Whether its transfers are written out."""
        moves = (*SENDS, *RECEIVES)
        return any(each.kind in moves for rank in self.ranks for each in rank)

    def __len__(self) -> int:
        return sum(map(len, self.ranks))

    def __str__(self) -> str:
        return "\n".join(" ".join(map(str, rank)) or "-" for rank in self.ranks)


def plan(rows: Iterable[Iterable[Action]]) -> Plan:
    """A plan of these actions, a row for each rank."""
    return Plan(tuple(tuple(row) for row in rows))


def told(rows: Iterable[Iterable[Action]], where: str) -> Plan:
    """A plan that somebody wrote. Raises BadInput where its numbers name far more passes than
    stand in it, or too many ranks: who reads it on makes tables of every stage and microbatch, and
    of every two ranks."""
    given = plan(rows)
    if len(given.ranks) > RANKS:
        raise BadInput(f"{where}: {len(given.ranks)} ranks, a line each; at most {RANKS}")
    named = given.stages * given.microbatches
    if named > max(SPARSE, len(given)):
        raise BadInput(
            f"{where}: {len(given)} actions name stages to {given.stages - 1} and microbatches to "
            f"{given.microbatches - 1}; each stage has a forward of each, both numbered from 0"
        )
    return given


def read(text: str) -> Plan:
    """The plan written as text: a line for each rank, actions apart by spaces or commas.

    `#` begins a comment, empty lines are passed over, and `-` alone is a rank with nothing to do.
    Raises BadInput saying which line and word.
    """
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            rows.append([action(word) for word in words if word != "-"])
        except BadInput as fault:
            raise BadInput(f"plan, line {number}: {fault}") from None
    if not rows:
        raise BadInput("plan: empty; write a line of actions for each rank, such as 0F0 0B0")
    return told(rows, "plan")
