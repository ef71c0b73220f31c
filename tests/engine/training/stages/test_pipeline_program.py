"""A rank's program in this process: chains of any modules, backwards in two halves, memory."""

import pytest
import torch
from torch import nn

from engine.core.errors import BadInput
from engine.distributed.memory_tracker import MemoryTracker
from engine.distributed.virtual import Network, play
from engine.distributed.wirings.mesh import Mesh
from engine.hardware.link import Link
from engine.training.plan.actions import Plan, read
from engine.training.stages.memory import Ledger
from engine.training.stages.program import Duty, program
from engine.training.stages.stage import dealt, language_stages
from tests.engine.training.plan.plans import lowered, made
from tests.engine.training.stages import pipelines

ROWS, WIDTH = 3, 16


def ran(plan: Plan, stages, batch, ledgers=None):
    """Every rank's program on the virtual clock, tensors real: gradients by stage and name."""
    ranks = len(plan.ranks)
    duties = [
        Duty(plan, rank, range(ranks), {s: stages[s] for s, r in plan.rank_of.items() if r == rank},
             batch, ledger=ledgers[rank] if ledgers else Ledger())
        for rank in range(ranks)
    ]  # fmt: skip
    network = Network(Mesh(), Link(name="test", bandwidth=1e9, latency=0.0), ranks)
    held = [MemoryTracker() for _ in duties]
    results = play([program(duty) for duty in duties], held, lambda step: 1.0, network).results
    return {stage: found for done in results for stage, found in done.gradients.items()}


@pytest.mark.parametrize("kind", ["gpipe", "1f1b", "zb_h1", "zb_v"])
def test_a_chain_of_modules_has_one_process_gradients_though_weights_are_used_twice(kind):
    """In float64, so that a half of the backward done wrong cannot hide behind rounding."""
    ranks = 2 if kind == "zb_v" else 4
    modules = pipelines.chain(WIDTH)
    torch.manual_seed(1)
    batch = [tuple(torch.randn(2, ROWS, WIDTH, dtype=torch.float64)) for _ in range(3)]
    found = ran(lowered(made(kind, ranks, 3)), pipelines.chain_stages(modules, ROWS, WIDTH), batch)
    whole = nn.Sequential(*modules)
    losses = [nn.functional.mse_loss(whole(x), y) for x, y in batch]
    torch.stack(losses).mean().backward()
    for stage, module in enumerate(modules):
        assert set(found[stage]) == {name for name, _ in module.named_parameters()}
        for name, weight in module.named_parameters():
            torch.testing.assert_close(found[stage][name], weight.grad, rtol=1e-12, atol=1e-14)


def test_what_a_forward_leaves_is_held_until_its_backward_for_the_weights():
    """Whole backwards let go at once; in two halves the second lets go."""
    most = {}
    for text in ("0F0 0F1 0B0 0B1", "0F0 0F1 0I0 0I1 0W0 0W1"):
        ledger, levels = Ledger(), []
        stages = language_stages(pipelines.MODEL, pipelines.WEIGHTS(pipelines.MODEL, 0), 1, 2, 12)
        steps, answer = program(Duty(read(text), 0, range(1), stages, pipelines.microbatches(2),
                                     ledger=ledger)), None  # fmt: skip
        ledger.note("weights", stages[0].parameters.values())
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                break
            answer = step.work()
            levels.append(ledger.held["activations"])
        most[text] = levels
    whole, halves = most.values()
    tokens = whole[-1]  # the microbatches themselves
    assert whole[1] == pytest.approx(2 * whole[0], rel=0.01) and whole[2] < 0.51 * whole[1]
    assert tokens < whole[0] / 100
    assert halves[3] >= halves[1] and halves[4] < 0.55 * halves[3] and halves[5] < whole[0] / 100


def test_a_ledger_counts_a_storage_once_moves_it_and_lets_it_go():
    ledger, tensor = Ledger(), torch.zeros(100)
    ledger.note("buffers", [tensor, tensor[10:], None])
    assert ledger.held["buffers"] == 400
    ledger.note("activations", [tensor.view(10, 10)])
    assert (ledger.held["buffers"], ledger.held["activations"]) == (0, 400)
    ledger.note("gradients", [tensor])  # what a backward needs stays that
    assert ledger.held["activations"] == 400
    del tensor
    assert sum(ledger.held.values()) == 0
    silent = Ledger(counting=False)
    kept = torch.zeros(5)
    silent.note("buffers", [kept])
    assert sum(silent.held.values()) == 0


@pytest.mark.parametrize(
    ("text", "count", "said"),
    [
        ("0F0 0B0 0STEP", 1, "STEP is in it, and nothing says what it does"),
        ("0F0 0F1 0B0 0B1", 1, "2 microbatches, 1 given"),
    ],
)
def test_what_a_duty_does_not_say_how_to_do_is_refused(text, count, said):
    stages = language_stages(pipelines.MODEL, pipelines.WEIGHTS(pipelines.MODEL, 0), 1, 2, 12)
    duty = Duty(read(text), 0, range(1), stages, pipelines.microbatches(count))
    with pytest.raises(BadInput, match=said):
        next(program(duty))


def test_layers_are_dealt_in_order_and_as_evenly_as_they_go():
    assert [list(layers) for layers in dealt(5, 3)] == [[0, 1], [2, 3], [4]]
    with pytest.raises(BadInput, match="9 stages: the model has 8 layers"):
        language_stages(pipelines.MODEL, {}, 9, 2, 12)
