"""A profiled step: parts that add up, lie within it, tell phases apart, and change nothing."""

import pytest

from engine.core.config import update
from engine.core.events import Span
from engine.core.run import Run
from engine.core.tags import facts
from engine.inference.config import InferenceConfig
from engine.inference.run import run

REAL = {"workload": "uniform", "workload.count": 5, "pages": 64, "max_running": 4}


def log_of(**changes):
    return Run.execute(run, update(InferenceConfig(), {**REAL, **changes})).log


def steps(log):
    return [s for s in log.of(Span) if s.name == "step"]


def parts(log):
    return [s for s in log.of(Span) if facts(s.tag).get("of") == "step"]


@pytest.fixture(scope="module", params=["real", "modelled"])
def logs(request):
    """The same work with every second step profiled, and with none."""
    more = {"executor": request.param}
    return log_of(profile_every=2, **more), log_of(profile_every=0, **more), request.param


def test_every_second_step_has_parts_that_lie_within_it(logs):
    log, plain, _ = logs
    assert not parts(plain)
    for place, step in enumerate(steps(log)):
        inside = [p for p in parts(log) if step.start <= p.start and p.stop <= step.stop]
        assert bool(inside) == (place % 2 == 0)
        total = sum(p.stop - p.start for p in inside)
        assert total <= step.stop - step.start + 1e-12


def test_parts_do_the_work_of_the_step_and_name_their_phase(logs):
    log, _, executor = logs
    seen = set()
    for step in steps(log)[::2]:
        inside = [p for p in parts(log) if step.start <= p.start and p.stop <= step.stop]
        told = facts(step.tag)
        kinds = [name for name in ("prefill", "decode") if int(told[name])]
        wanted = kinds[0] if len(kinds) == 1 else "mixed"
        assert {facts(p.tag)["phase"] for p in inside} == {wanted}
        seen.add(wanted)
        counted = sum(p.flops for p in inside if p.lane != "norms")
        assert counted == pytest.approx(step.flops, rel=1e-6)
        assert {facts(p.tag).get("grade", "") for p in inside} == (
            {"modelled"} if executor == "modelled" else {""}
        )
    assert "decode" in seen and len(seen) > 1


def test_profiling_changes_no_token(logs):
    log, plain, _ = logs
    tokens = [
        [(e.thread, e.text) for e in one if type(e).__name__ == "Token"] for one in (log, plain)
    ]
    assert sorted(tokens[0]) == sorted(tokens[1]) and tokens[0]


def test_a_modelled_header_carries_the_roofs_of_its_device():
    log = log_of(executor="modelled", **{"executor.device": "a100-sxm-80gb"})
    roofs = log.opened.facts["roofs"]
    assert {roof["device"] for roof in roofs} == {"a100-sxm-80gb"}
    assert max(r["value"] for r in roofs if r["kind"] == "bandwidth") == pytest.approx(
        19.5e12, 0.01
    )
