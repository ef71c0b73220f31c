"""A run on a mesh tells its passes, collectives, memory and errors."""

from engine.core.config import update
from engine.core.events import Level, Move, Span
from engine.core.run import Run
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.run import ERROR, run
from engine.training.pipeline.executors.mesh import EXACT_EPS
from tests.engine.training.parallel.made import EXACT


def test_a_run_tells_passes_collectives_memory_and_errors():
    config = update(MeshTrainingConfig(), {"mesh.tensor": 2, "learning.eps": EXACT_EPS})
    log = Run.execute(run, config).log
    errors = [e.value for e in log.of(Level) if e.name == ERROR]
    assert max(errors) <= EXACT
    for rank in range(2):
        spans = [s for s in log.of(Span) if s.lane == f"rank {rank}"]
        assert {s.name for s in spans} >= {"F", "B", "optimiser", "all_reduce"}
        ends = sorted((s.start, s.stop) for s in spans)
        # Passes are told between the collectives they wait for: nothing lies over anything.
        assert all(a[1] <= b[0] + 1e-9 for a, b in zip(ends, ends[1:], strict=False))
        levels = {e.name: e.value for e in log.of(Level) if e.lane == f"rank {rank}"}
        for kind in ("weights", "gradients", "optimiser"):
            assert levels[f"{kind} counted"] == levels[f"{kind} by formula"] > 0
            assert f"memory/{kind}" in levels
    layer = [m for m in log.of(Move) if "layer_0.out" in m.tag]
    # A row-parallel output forward, the input's gradient of a column-parallel pair backward.
    assert len(layer) == 2 * 2
    assert {m.bytes for m in layer} == {config.batch * config.tokens * 32 * 4}
