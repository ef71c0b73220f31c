"""Wide expert parallelism: a device's part of a step, what runs beside what, what does not fit."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Opened, Span
from engine.core.run import Run
from engine.hardware.device import device
from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.wide_expert_cost import BUS, CORES, WideExpertCost
from engine.inference.executors.tensors.expert_dispatch import Dispatched, dispatch
from engine.inference.executors.wide_experts import WideExperts
from engine.inference.run import run
from engine.inference.workloads.steady import Steady
from engine.models.feedforward import Mixture
from engine.models.loading.find import find
from engine.models.loading.load import random_model
from engine.training.derived_plans.config import small

CONFIG = InferenceConfig(
    model="deepseek-r1",
    dtype="bfloat16",
    executor=WideExperts(own=4),
    workload=Steady(count=8, prompt=300, output=3),
    page_size=64,
    pages=100,
    step_tokens=2048,
    profile_every=1,
)


def cost(**changes) -> WideExpertCost:
    how = WideExperts(**changes)
    return WideExpertCost(find("deepseek-r1").config, device(how.device), how)


def test_a_devices_work_is_its_part_of_a_step() -> None:
    one, four = cost(), cost(own=4)
    alone, whole = one.counted(6, 6000, [], 6), four.counted(24, 24_000, [], 24)
    assert four.load(whole) == one.load(alone)
    assert four.total(whole)[0] == pytest.approx(one.total(alone)[0])


def test_tokens_go_to_as_many_experts_as_come_back() -> None:
    """Of 320 dies 32 have the shared expert, the others one routed copy each."""
    here, away, copies = cost().spread(9.0)
    assert copies == 1.0
    assert here == away == pytest.approx(9.0 * 320 / 32)  # the shared ones get most: 10 > 8.9
    here, away, copies = cost(dies=32).spread(9.0)
    assert copies == 10.0 and here == pytest.approx(9.0 * 8 + 9.0)
    assert away == pytest.approx(9.0 * 8 * 31 / 32)  # none for the shared one, which all have


def test_seconds_are_plain_numbers() -> None:
    """Events carry them, and views pack events."""
    asked = cost()
    assert {type(each) for each in asked.total(asked.counted(3, 900, [(2, 30)], 5))} == {float}


def test_flops_are_those_of_the_parameters_a_token_meets() -> None:
    """37 billion of DeepSeek-R1's, without embedding; attention comes on top."""
    asked = cost(dies=32, redundant=0)
    shape = asked.counted(0, 0, [(512, 0)] * 64, 64)
    products = sum(o.flops for o in asked.describe(shape) if o.name not in ("attend", "head"))
    assert products / (2 * 512 * 64) == pytest.approx(36e9, rel=0.05)


def test_prompts_raise_their_keys_and_answers_do_not() -> None:
    asked = cost()
    prompts = asked.load(asked.counted(0, 0, [(4096, 0)], 1))
    answers = asked.load(asked.counted(3, 9000, [(2, 3000)], 5))
    assert prompts.latent == 0 and prompts.raised == 4096
    assert answers.raised == 0 and answers.latent == 5
    assert answers.latent_pairs == 9000 + 3001 + 3002


@pytest.mark.parametrize("prompts", [False, True])
def test_two_microbatches_are_no_sooner_than_either_lane(prompts) -> None:
    asked = cost(dies=32, own=32)
    given = (0, 0, [(4096, 0)] * 64, 64) if prompts else (3000, 9 << 20, [], 3000)
    one = asked.counted(*given)
    went = asked.went(one, 2, 4)
    last = max(each.stop for each in went)
    lanes = {each.operation.lane for each in went}
    assert lanes == ({CORES, BUS} if prompts else {"attention path", "expert path"})
    busy = [sum(e.stop - e.start for e in went if e.operation.lane == lane) for lane in lanes]
    assert max(busy) <= last * (1 + 1e-9) <= sum(busy) * (1 + 2e-9)
    for n in (0, 1):  # a part's operations in their order
        own = [each for each in went if each.operation.part == n]
        assert all(a.stop <= b.start + 1e-12 for a, b in zip(own, own[1:], strict=False))


def test_in_turn_weights_are_read_twice_and_nothing_is_gained() -> None:
    beside, turn, none = (cost(overlap=how) for how in ("beside", "in_turn", "none"))
    shape = none.counted(48, 48 * 4096, [], 48)
    seconds = [each.total(shape)[0] for each in (beside, none, turn)]
    assert seconds[0] <= seconds[1] < seconds[2]


def test_a_slower_bus_and_a_hot_expert_take_longer() -> None:
    shape = cost().counted(96, 96 * 4096, [], 96)
    usual = cost().total(shape)[0]
    for changes in ({"bandwidth": 2e10}, {"skew": 3.0}, {"exchange": "gather"}, {"int8": False}):
        assert cost(**changes).total(shape)[0] > usual


def test_a_device_that_cannot_hold_its_experts_says_by_how_much() -> None:
    narrow = update(CONFIG, {"executor.dies": 8})
    with pytest.raises(BadInput, match=r"do not fit its 64 GB by .* GB .* bytes.; spread experts"):
        Run.execute(run, narrow, seed=0)
    with pytest.raises(BadInput, match="latent attention with experts"):
        Run.execute(run, update(CONFIG, {"model": "llama-3.1-8b"}), seed=0)


def test_drafts_and_lanes_stand_in_one_header() -> None:
    drafted = update(CONFIG, {"speculation": {"kind": "ngram", "tokens": 1}})
    log = Run.execute(run, drafted, seed=0).log
    lanes = {span.lane for span in log.of(Span)}
    assert {"cores", "bus"} <= lanes
    told = next(iter(log.of(Opened))).facts["lanes"]
    assert {"cores", "bus"} < set(told) and len(told) > 4  # the draft's and the target's, too


def mixture() -> tuple[Mixture, torch.Tensor]:
    model = random_model(small("deepseek_v3"), 0, "float32")
    block = next(each for each in model.blocks if isinstance(each.mlp, Mixture))
    x_TC = torch.randn(17, model.config.hidden, generator=torch.Generator().manual_seed(1))
    return block.mlp, x_TC


def test_dispatch_on_one_rank_is_the_mixture_itself_bit_for_bit() -> None:
    inner, x_TC = mixture()
    assert torch.equal(Dispatched(inner, [None], 17, False)(x_TC), inner(x_TC))


def test_eight_bits_are_near() -> None:
    inner, x_TC = mixture()
    exact, near = inner(x_TC), Dispatched(inner, [None], 17, True)(x_TC)
    error = float((near - exact).norm() / exact.norm())
    assert 0 < error < 0.02


class Mailbox:
    """The way to a twin that says what its experts say at once."""

    def __init__(self, twin: Dispatched) -> None:
        self.twin, self.waiting = twin, []

    def send(self, tensors, task) -> None:
        if task == "dispatch":
            counts_E, *coded = tensors
            count = int(counts_E.sum())
            said = self.twin._experts(self.twin._decoded([c[:count] for c in coded]), counts_E)
            self.waiting.append([self.twin._roomy(said)])

    def receive(self, shapes, task):
        if task == "combine":
            return self.waiting.pop(0)
        return [torch.zeros(sizes, dtype=dtype) for sizes, dtype in shapes]  # nobody sends a token


@pytest.mark.parametrize("int8", [False, True])
def test_dispatch_to_another_rank_says_the_same_bits(int8) -> None:
    inner, x_TC = mixture()
    twin = Dispatched(inner, [SimpleNamespace(), None], 17, int8)
    ours = Dispatched(inner, [None, Mailbox(twin)], 17, int8)
    assert torch.equal(ours(x_TC), Dispatched(inner, [None], 17, int8)(x_TC))
    wrong = Dispatched(inner, [None, Mailbox(twin)], 17, int8, swapped=True)
    assert not torch.equal(wrong(x_TC), ours(x_TC))


def test_every_mixture_of_a_model_is_dispatched() -> None:
    model = random_model(small("deepseek_v3"), 0, "float32")
    dispatch(model, [None], 8, False)
    kinds = [type(block.mlp).__name__ for block in model.blocks]
    assert kinds == ["FeedForward", "Dispatched"]
    assert np.count_nonzero(model.config.expert_layers) == 1
