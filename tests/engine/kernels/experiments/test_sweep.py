"""A sweep: every kernel at every shape becomes spans with its own work, under measured roofs."""

import pytest

from engine.core.config import kinds, update
from engine.core.errors import BadInput
from engine.core.events import Mark, Span
from engine.core.run import Run
from engine.core.tags import facts
from engine.hardware.counters import Counters, counters
from engine.hardware.device import Device, Spread
from engine.kernels.experiments import sweep
from engine.kernels.experiments.shapes.shapes import Shapes
from engine.kernels.experiments.sweep import Sweep
from engine.kernels.operator import operators

ONE = Spread(low=1e9, median=1e10, high=1e10, count=3)
MACHINE = Device(
    slug="this-machine",
    name="made",
    kind="cpu",
    grade="measured",
    peaks={"float32": 1e11},
    bandwidth=1e10,
    capacity=1e9,
    caches={"L1": 2.0**15, "L2": 2.0**18, "L3": 2.0**20},
    threads=2,
    spread={"read": ONE, "read_one_thread": ONE, "multiply_add": ONE},
)


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    monkeypatch.setattr(sweep, "measure", lambda *given, **more: MACHINE)


def log_of(**changes):
    changes = {name.replace("__", "."): value for name, value in changes.items()}
    return Run.execute(sweep.run, update(Sweep(seconds=0.0), changes)).log


def own(log):
    return [s for s in log.of(Span) if facts(s.tag).get("device") is None]


def test_every_operator_at_a_chosen_shape_exists_and_makes_its_case():
    chosen = kinds(Shapes)
    assert {"all", "norm", "matmul", "attention", "paged_attention"} <= set(chosen)
    for name, kind in chosen.items():
        for operator, case in kind().cases():
            assert operator is operators()[operator.name] and case.name
            assert name in ("all", operator.name)


def test_spans_carry_the_operators_own_work_and_what_ran_it():
    log = log_of(operator="norm", operator__rows=3, operator__width=40)
    spans = own(log)
    assert len(spans) == sweep.LEAST
    for span in spans:
        assert (span.lane, span.flops) == ("norm", 4 * 3 * 40)
        assert span.bytes == 8 * 3 * 40 + 4 * 40
        told = facts(span.tag)
        assert (told["shape"], told["dtype"], told["variant"]) == ("3x40", "float32", "rows_cpu")


def test_a_described_device_is_modelled_beside_with_the_same_work():
    small = {"operator__rows": 8, "operator__outputs": 32, "operator__inputs": 16}
    log = log_of(operator="matmul", beside="h100-sxm", **small)
    (ghost,) = [s for s in log.of(Span) if facts(s.tag).get("device") == "h100-sxm"]
    assert facts(ghost.tag)["grade"] == "modelled" and ghost.start >= 0
    assert (ghost.flops, ghost.bytes) == (own(log)[0].flops, own(log)[0].bytes)
    assert ghost.time - ghost.start == pytest.approx(2.6e-6, rel=0.01), "bound by its launch"
    devices = {roof["device"] for roof in log.opened.facts["roofs"]}
    assert devices == {"this-machine", "h100-sxm"}
    alone = log_of(operator="norm", operator__rows=1)
    assert {roof["device"] for roof in alone.opened.facts["roofs"]} == {"this-machine"}


@pytest.mark.parametrize(
    ("inputs", "rows", "level"), [("warm", 1, "L1"), ("warm", 512, "L2"), ("cold", 1, None)]
)
def test_warm_inputs_say_which_cache_they_stay_in(inputs, rows, level):
    log = log_of(operator="norm", operator__rows=rows, operator__width=64, inputs=inputs)
    assert facts(own(log)[0].tag).get("resident") == level


def test_cold_inputs_are_other_memory_at_each_call():
    given = {"x": __import__("torch").ones(4), "eps": 1e-5}
    other = sweep._clone(given)
    assert other["x"].data_ptr() != given["x"].data_ptr() and other["eps"] == given["eps"]


def test_what_cannot_run_is_left_out_and_said(monkeypatch):
    class Broken(type(operators()["norm"])):
        def pick(self, arguments, forced=""):
            raise BadInput("norm: no variant takes these arguments")

    fields = vars(operators()["norm"])
    monkeypatch.setattr(
        "engine.kernels.experiments.shapes.norm.operator", lambda name: Broken(**fields)
    )
    log = log_of(operator="norm")
    assert not list(log.of(Span))
    assert "no variant takes" in next(m.text for m in log.of(Mark) if m.name == "left out")


def test_fewer_threads_are_used_and_given_back():
    import numba

    before = numba.get_num_threads()
    log = log_of(operator="norm", operator__rows=4, threads=1)
    assert numba.get_num_threads() == before
    reads = [r for r in log.opened.facts["roofs"] if r["level"] == "DRAM"]
    assert reads[0]["value"] == 1e10


def test_an_unknown_variant_is_answered_with_the_known_ones():
    with pytest.raises(BadInput, match="variant 'nosuch': no such variant; one of: rows, rows_cpu"):
        log_of(operator="norm", variant="nosuch")


def test_an_unknown_device_is_answered_with_the_known_ones():
    with pytest.raises(BadInput, match="device 'x100': no data sheet"):
        log_of(operator="norm", beside="x100")


def test_counters_count_or_say_why_not():
    found, why = counters()
    assert (found is None) == bool(why)
    if found is not None:
        before = found.misses()
        assert found.misses() >= before >= 0
        found.close()
        assert found.files == []
    else:
        assert why.startswith("hardware counters: ") and "\n" not in why


def test_a_system_without_counters_says_so_and_the_sweep_goes_on(monkeypatch):
    monkeypatch.setattr("engine.hardware.counters.CALLS", {})
    log = log_of(operator="norm", operator__rows=1)
    assert any(m.name == "counters" and "not on" in m.text for m in log.of(Mark))
    assert own(log) and isinstance(Counters([]).misses(), int)
