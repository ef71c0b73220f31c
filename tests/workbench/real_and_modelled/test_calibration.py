"""The calibration finds overheads and shares that were put in, and says what error is left."""

import numpy as np
import pytest

from engine.hardware.device import Device, device
from engine.inference.executors.costs.step_cost import StepCost
from engine.inference.executors.modelled import Modelled
from engine.models.loading.find import find
from workbench.real_and_modelled.calibration import SHARES, errors, fit
from workbench.real_and_modelled.steps_taken import Taken

CONFIG = find("qwen3-0.6b").config
MACHINE = device("h100-sxm").at_best().model_copy(update={"launch": 0.0})
PROCESSOR = MACHINE.model_copy(update={"kind": "cpu", "launch": 1e-4})


def steps(truth: Modelled, noise: float = 0.0, machine: Device = MACHINE) -> list[Taken]:
    """Steps of all sizes that last exactly as `truth` says, give or take `noise`."""
    random = np.random.default_rng(0)
    cost = StepCost(CONFIG, truth.calibrated(machine), "bfloat16")
    found = []
    for number in range(60):
        size = int(random.integers(1, 40))
        new_B = np.ones(size, np.int32)
        if number % 3 == 0:
            new_B[0] = random.integers(2, 3000)
        context_B = new_B + random.integers(0, 3000, size).astype(np.int32)
        seconds, _, _ = cost.total(cost.shape(new_B, context_B, size))
        seconds += truth.per_step + truth.per_sequence * size
        seconds *= float(np.exp(noise * random.standard_normal()))
        found.append(Taken(new_B, context_B, size, seconds))
    return found


@pytest.mark.parametrize(
    "truth",
    [
        Modelled(per_step=3e-3, per_sequence=2e-5, memory=SHARES[20], arithmetic=SHARES[15]),
        Modelled(per_step=0.0, per_sequence=1e-3, memory=SHARES[25], arithmetic=SHARES[25]),
        Modelled(per_step=1e-4, per_sequence=0.0, memory=SHARES[22], arithmetic=SHARES[10]),
    ],
)
@pytest.mark.parametrize("machine", [MACHINE, PROCESSOR], ids=["gpu", "rows by fours, one call"])
def test_what_was_put_in_is_found_again(truth, machine):
    found = fit(steps(truth, machine=machine), StepCost(CONFIG, machine, "bfloat16"))
    assert found.left < 1e-6 and found.steps == 60
    for name, value in found.knobs.items():
        assert value == pytest.approx(getattr(truth, name), rel=1e-3, abs=1e-9), name


def test_noise_stays_as_error_and_is_said():
    truth = Modelled(per_step=3e-3, per_sequence=2e-5, memory=0.5, arithmetic=0.3)
    found = fit(steps(truth, noise=0.2), StepCost(CONFIG, MACHINE, "bfloat16"))
    assert 0.05 < found.left < 0.3


def test_errors_are_relative_to_the_real_step_and_signed():
    truth = Modelled(per_step=1e-3, memory=0.5, arithmetic=0.5)
    taken = steps(truth)
    cost = StepCost(CONFIG, truth.calibrated(MACHINE), "bfloat16")
    assert np.abs(errors(taken, cost, truth)).max() < 1e-9
    slower = truth.model_copy(update={"per_step": 1e-3 + 0.5})
    assert (errors(taken, cost, slower) > 1).all()
