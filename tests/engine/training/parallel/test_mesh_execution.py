"""A pipeline's plan carried out on a mesh: its lanes, its passes, and how far from one process."""

import pytest

from engine.cluster.pipeline import ERROR, run
from engine.core import tags
from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level, Span
from engine.core.run import Run
from engine.training.pipeline.config import PipelineConfig
from tests.engine.training.parallel.made import EXACT

MESH = {"ranks": 2, "microbatches": 2, "schedule": "zb_h1", "executor": "mesh"}


def test_a_plan_on_a_mesh_tells_every_rank_s_passes_and_finds_the_gradients_of_one_process():
    log = Run.execute(run, update(PipelineConfig(), MESH)).log
    lanes = [f"rank {rank}" for rank in range(4)]
    assert log.opened.facts["lanes"] == lanes
    (error,) = [e.value for e in log.of(Level) if e.name == ERROR]
    assert 0 < error <= EXACT
    for lane in lanes:
        spans = [s for s in log.of(Span) if s.lane == lane]
        assert all(0 <= s.start <= s.stop for s in spans)
        passes = {(s.name, tags.facts(s.tag)["mb"]) for s in spans if s.name in ("F", "I", "W")}
        assert passes == {(kind, mb) for kind in ("F", "I", "W") for mb in ("0", "1")}
        assert {s.name for s in spans} >= {"all_gather", "reduce_scatter", "optimiser"}
    text = str(log.opened.facts["plan"])
    assert len(text.splitlines()) == 2


def test_a_model_that_does_not_divide_among_the_mesh_says_so():
    asked = update(PipelineConfig(), {**MESH, "executor.tensor": 3})
    with pytest.raises(BadInput, match="heads 8 cannot be dealt evenly to 3 tensor ranks"):
        Run.execute(run, asked)
