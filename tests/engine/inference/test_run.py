"""The driver: from a config to a closed log, and what a person can tell it meanwhile."""

import time
from dataclasses import replace

import pytest

from engine.core.config import from_dict
from engine.core.errors import BadInput
from engine.core.events import Blob, Branch, Opened, Span, Token, Told
from engine.core.file import load, save
from engine.core.measure import serving
from engine.core.run import Live, Run
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.run import run
from tests.engine.inference.audit import Reader
from tests.engine.inference.small import request, serve


def modelled(**fields) -> InferenceConfig:
    base = {"executor": "modelled", "workload": {"kind": "uniform", "count": 12, "rate": 50.0}}
    return InferenceConfig(**{**base, **fields})


def test_a_modelled_run_serves_its_workload_and_explains_itself():
    log = Run.execute(run, modelled(), seed=4).log
    header = log.events[0]
    assert isinstance(header, Opened) and header.clock == "virtual" and header.seed == 4
    wanted = {"pages", "page_size", "host_pages", "layers", "heads", "model", "device"}
    assert wanted | {"bytes_per_page", "requests"} <= header.facts.keys()
    assert from_dict(InferenceConfig, header.config) == modelled()
    assert serving(log).finished == header.facts["requests"] == 12
    assert log.closed is not None and log.closed.reason == "finished"


def test_padding_costs_time_in_a_modelled_step():
    config = modelled(batching="static_batch", max_running=8)
    built = config.executor.build(config)
    seen = []

    class Watched:
        facts = built.executor.facts

        def execute(self, step):
            result = built.executor.execute(step)
            if step.padding:
                bare = built.executor.execute(replace(step, padding=0))
                seen.append((result.flops, bare.flops, result.seconds, bare.seconds))
            return result

    held = Engine(config, Watched(), built.clock, [].append)
    serve(held, [request(8 + 5 * n, n, max_tokens=4 + n) for n in range(6)])
    assert seen and all(flops > bare for flops, bare, _, _ in seen)
    assert all(seconds >= bare for _, _, seconds, bare in seen)


def test_a_run_with_the_same_config_is_the_same_run():
    assert Run.execute(run, modelled()).log == Run.execute(run, modelled()).log


def test_a_real_run_answers_in_text_and_samples_attention(tmp_path):
    config = InferenceConfig(
        workload={"kind": "prompts", "texts": ["def add(a, b):\n    return"]},
        sampling={"max_tokens": 9},
        attention_every=3,
    )
    log = Run.execute(run, config).log
    tokens = log.of(Token)
    assert 0 < len(tokens) <= 9 and all(token.logprob <= 0 for token in tokens)
    blobs = log.of(Blob)
    assert blobs and all(blob.shape == [config.pages] for blob in blobs)
    for blob in blobs:
        mass = log.blobs[blob.ref]
        assert mass.sum() == pytest.approx(1.0, abs=1e-4) and (mass >= 0).all()
    assert any(s.name == "attention sample" and s.time > s.start for s in log.of(Span))
    reader = Reader(config.pages)
    reader.read(log.events)
    assert len(reader.free) + len(reader.parents) == config.pages
    assert load(save(log, tmp_path / "real.run")) == log


def test_a_person_can_abort_fork_and_add_while_it_runs():
    config = modelled(
        workload={"kind": "uniform", "count": 3, "rate": 0.0},
        sampling={"max_tokens": 400, "ignore_eos": True},
    )

    def paused(config: InferenceConfig, live: Live) -> None:
        live.pause()  # here, since the run may be over before anyone else could
        run(config, live)

    live = Run.start(paused, config)
    _until(lambda: live.state == "paused")
    live.step(20)
    _until(lambda: any(isinstance(e, Token) for e in live.log.since(0)))
    live.tell(fork="r0")
    live.tell(abort="r1")
    live.tell(tokens=[5, 6, 7], sampling={"max_tokens": 4})
    live.tell(tokens=[], sampling={"max_tokens": 4})
    live.tell(prompt=7, sampling={"max_tokens": "many"})
    live.tell(abort="nobody")
    live.resume()
    live.wait(300)
    log = live.log
    ends = {e.thread: e.state for e in log.of(Branch)}
    assert ends == {
        "r0": "finished",
        "r0.1": "finished",
        "r1": "aborted",
        "r2": "finished",
        "r3": "finished",
    }
    assert len(log.of(Told)) == 6
    assert sum(token.thread == "r3" for token in log.of(Token)) == 4


def test_requests_that_can_never_run_are_rejected_and_the_rest_served():
    config = modelled(
        workload={"kind": "uniform", "count": 20, "shortest": 4, "longest": 200},
        pages=8,
        sampling={"max_tokens": 20},
    )
    found = serving(Run.execute(run, config).log)
    assert 0 < found.finished < 20
    states = [e.state for e in Run.execute(run, config).log.of(Branch)]
    assert states.count("rejected") == 20 - found.finished


def test_an_unknown_model_is_bad_input_and_closes_the_log():
    live = Run.start(run, InferenceConfig(model="no-such-model"))
    with pytest.raises(BadInput, match="no-such-model"):
        live.wait(300)
    assert live.log.closed is not None and "no-such-model" in live.log.closed.reason


def _until(happened, seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.01)
