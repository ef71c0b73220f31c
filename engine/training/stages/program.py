"""A rank's part of a pipeline plan as a program: passes, transfers and ends in the plan's order.

In come a lowered plan, the rank's stages, its microbatches and what ends a step; out go losses and
the gradients of its weights. A receive makes room and goes on; the pass that needs it waits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from engine.core.errors import BadInput
from engine.distributed.program import Compute, Program, Receive, Send, Wait
from engine.distributed.transport import Shape
from engine.training.plan.actions import NONE, RECEIVES, SENDS, WHOLE, Action, Kind, Plan
from engine.training.stages.backward import (
    Forward,
    Gradients,
    backward,
    backward_input,
    backward_weight,
)
from engine.training.stages.memory import ACTIVATIONS, BUFFERS, GRADIENTS, Ledger
from engine.training.stages.stage import Stage

NAMES = {
    Kind.SEND_F: "send",
    Kind.SEND_B: "send",
    Kind.RECV_F: "receive",
    Kind.RECV_B: "receive",
    Kind.REDUCE_GRAD: "all_reduce",
    Kind.UNSHARD: "all_gather",
    Kind.RESHARD: "reshard",
    Kind.STEP: "optimiser",
}
WORK = {Kind.F: 1, Kind.B: 2, Kind.I: 1, Kind.W: 1}  # flops of a pass, in forwards
End = Callable[[int, Gradients], object]  # of a stage: its number, its gradients so far
Microbatch = tuple[Tensor, Tensor]  # what goes in, what should come out


@dataclass
class Duty:
    """What one rank of a plan is to do.

    `plan`: with its transfers; `rank`: this one in it; `peers`: the transport's number of each rank
    of the plan. `stages`: those of this rank; `batch`: all microbatches, needed where the first or
    the last stage is. `ends`: what REDUCE_GRAD, UNSHARD, RESHARD and STEP do. `blocking`: transfers
    hold both ranks, as the checker takes it.
    """

    plan: Plan
    rank: int
    peers: Sequence[int]
    stages: Mapping[int, Stage]
    batch: Sequence[Microbatch]
    ends: Mapping[Kind, End] = field(default_factory=dict)
    blocking: bool = False
    ledger: Ledger = field(default_factory=Ledger)


@dataclass
class Done:
    """`losses`: of each microbatch, where the last stage is; `gradients`: of each stage."""

    losses: dict[int, float]
    gradients: dict[int, Gradients]


def said(action: Action) -> str:
    """A span's tag: which microbatch and which stage."""
    stage = f"stage={action.stage}"
    return stage if action.microbatch == NONE else f"mb={action.microbatch} {stage}"


def program(duty: Duty) -> Program[Done]:
    """One step of training; gradients are of the mean of the microbatches' losses.

    Raises BadInput where the plan asks for something that `duty` does not say how to do.
    """
    here = _Here(duty)
    for action in duty.plan.ranks[duty.rank]:
        kind = action.kind
        if kind in SENDS:
            neighbour = here.peer(action.stage + (1 if kind is Kind.SEND_F else -1))
            yield Send(neighbour, [here.made.pop(action)], said(action))
        elif kind in RECEIVES:
            neighbour = here.peer(action.stage + (-1 if kind is Kind.RECV_F else 1))
            here.tickets[action] = yield Receive(neighbour, [here.shape(action)], said(action))
            if duty.blocking:
                here.arrived(action, (yield Wait(here.tickets.pop(action))))
        else:
            needed = needs(action)
            if needed in here.tickets:
                here.arrived(needed, (yield Wait(here.tickets.pop(needed))))
            name, own = NAMES.get(kind, kind.value), duty.stages[action.stage]
            flops = own.flops * WORK.get(kind, 0)
            yield Compute(name, partial(here.do, action), flops, said(action))
    return Done(here.losses, here.gradients)


def needs(action: Action) -> Action:
    """The receive that a pass takes its tensor from."""
    kind = Kind.RECV_F if action.kind is Kind.F else Kind.RECV_B
    return Action(action.stage, kind, action.microbatch)


class _Here:
    """What a rank holds while it goes through its actions."""

    def __init__(self, duty: Duty) -> None:
        self.duty, self.ledger = duty, duty.ledger
        self.home, self.last = duty.plan.rank_of, duty.plan.stages - 1
        self.tickets: dict[Action, object] = {}  # of posted receives
        self.made: dict[Action, Tensor] = {}  # by the send it is for, or the receive it stands for
        self.forwards: dict[tuple[int, int], Forward] = {}
        self.of_input: dict[tuple[int, int], Tensor | None] = {}  # between I and W
        self.gradients: dict[int, Gradients] = {stage: {} for stage in duty.stages}
        self.losses: dict[int, float] = {}
        self._possible()

    def _possible(self) -> None:
        asked = {each.kind for each in self.duty.plan.ranks[self.duty.rank]} & set(WHOLE)
        unknown = sorted(asked - set(self.duty.ends))
        if unknown:
            raise BadInput(f"plan: {unknown[0]} is in it, and nothing says what it does here")
        if len(self.duty.batch) < self.duty.plan.microbatches:
            raise BadInput(
                f"plan: {self.duty.plan.microbatches} microbatches, {len(self.duty.batch)} given"
            )

    def peer(self, stage: int) -> int:
        return self.duty.peers[self.home[stage]]

    def shape(self, receive: Action) -> Shape:
        own = self.duty.stages[receive.stage]
        return own.takes if receive.kind is Kind.RECV_F else own.gives

    def arrived(self, receive: Action, tensors: Sequence[Tensor]) -> None:
        self.made[receive] = tensors[0]

    def do(self, action: Action) -> None:
        """A pass, or an end of the step."""
        if action.kind is Kind.F:
            self._forward(action)
        elif action.kind in (Kind.B, Kind.I):
            self._backward(action)
        elif action.kind is Kind.W:
            self._weights(action)
        else:
            self.duty.ends[action.kind](action.stage, self.gradients[action.stage])

    def _forward(self, action: Action) -> None:
        stage, own = action.stage, self.duty.stages[action.stage]
        given, target = self.duty.batch[action.microbatch]
        begun = None
        with self.ledger.saving():
            if stage == 0:
                begun = own.begin(given) if own.begin else None
                start = (given if begun is None else begun).detach()
            else:
                start = self.made.pop(needs(action))
            start.requires_grad_(start.is_floating_point())
            made = own.forward(start)
            if stage == self.last and own.loss is not None:
                made = own.loss(made, target)
                self.losses[action.microbatch] = made.item()
        self.ledger.note(ACTIVATIONS, [start])
        done = Forward(start, get_gradient_edge(made), begun)
        self.forwards[stage, action.microbatch] = done
        if stage == self.last:
            # Each microbatch's share of the mean, in place of a gradient from the stage behind.
            share = torch.full_like(made.detach(), 1 / self.duty.plan.microbatches)
            self.made[Action(stage, Kind.RECV_B, action.microbatch)] = share
        else:
            self._hand_on(Action(stage, Kind.SEND_F, action.microbatch), made.detach())

    def _backward(self, action: Action) -> None:
        """Whole, or its first half."""
        stage, place = action.stage, (action.stage, action.microbatch)
        weights = self.duty.stages[stage].parameters
        gradient = self.made.pop(needs(action))
        if action.kind is Kind.B:
            of_input, found = backward(self.forwards.pop(place), gradient, weights)
            self._add(stage, found)
        else:
            of_input = backward_input(self.forwards[place], gradient, weights)
            self.of_input[place] = of_input
        if stage > 0 and of_input is not None:
            self._hand_on(Action(stage, Kind.SEND_B, action.microbatch), of_input)

    def _weights(self, action: Action) -> None:
        place, weights = (
            (action.stage, action.microbatch),
            self.duty.stages[action.stage].parameters,
        )
        done = self.forwards.pop(place)
        self._add(action.stage, backward_weight(done, self.of_input.pop(place), weights))

    def _add(self, stage: int, found: Gradients) -> None:
        total = self.gradients[stage]
        for name, more in found.items():
            if name in total:
                total[name] += more
            else:
                total[name] = more.clone()  # autograd may have handed out one storage twice
        self.ledger.note(GRADIENTS, total.values())

    def _hand_on(self, send: Action, tensor: Tensor) -> None:
        """To the rank beside, or to the stage beside where that is here."""
        stage = send.stage + (1 if send.kind is Kind.SEND_F else -1)
        here = self.home[stage] == self.duty.rank
        self.made[Action(stage, SENDS[send.kind], send.microbatch) if here else send] = tensor
        self.ledger.note(BUFFERS, [tensor])
