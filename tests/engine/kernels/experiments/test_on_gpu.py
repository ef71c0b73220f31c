"""The GPU's benchmark walks its whole path here: Triton's interpreter, small shapes."""

import pytest
import torch

from engine.core.errors import BadInput
from engine.core.events import Level, Span
from engine.core.file import load, save
from engine.core.run import Run
from engine.kernels.experiments.on_gpu import ERROR, LEAN, PEER, GpuAttention, run
from workbench.benches import gpu

SMALL = GpuAttention(shortest=32, longest=32, context=20, batch=1, rounds=1, device="cpu")


@pytest.fixture(scope="module")
def log():
    done = Run.execute(run, SMALL)
    assert done.failure is None
    return done.log


def test_every_kernel_gives_what_torchs_gives(log):
    errors = {level.lane: level.value for level in log.of(Level) if level.name == ERROR}
    assert len(errors) == 4 * 2 + 2 * (1 + len(LEAN)), "sizes and masks; runs of decode"
    assert max(errors.values()) <= gpu.MOST and min(errors.values()) >= 0


def test_calls_take_turns_and_the_run_can_be_kept(log, tmp_path):
    names = [span.name for span in log.of(Span) if span.lane == "attention"]
    assert names[:4] == ["tiles", PEER, "tiles", PEER]
    back = load(save(log, tmp_path / "gpu.run"))
    assert gpu.rows(back) == gpu.rows(log)


def test_rows_say_error_ratio_and_limit(log):
    found = gpu.rows(log)
    assert len(found) == 4 + 2 * len(LEAN) and all(row["seconds"] > 0 for row in found)
    assert {row["holds_to"] for row in found} == {"≥ 0.9×", "≥ 70%"}
    assert len(gpu.table(found)) == len(found) + 1


def test_a_wrong_kernel_has_no_figure():
    row = gpu._row("attention", "x", "tiles", 1.0, 1.0, 0.5, float("nan"))
    assert row["seconds"] is None and "WRONG" in row["what"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so():
    with pytest.raises(BadInput, match="no GPU here"):
        gpu.run(False, lambda text: None)
