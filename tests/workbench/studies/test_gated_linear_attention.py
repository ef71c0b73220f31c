"""Gated linear attention's timed claims: a form that takes long ends its sweep and is not ahead."""

import pytest

from engine.core.config import update
from workbench.catalogue import study
from workbench.studies.attention import gated_linear_attention as gated

SHORT = {"shortest": 256, "longest": 2048, "rounds": 1, "heads": 8}


def test_a_pass_that_takes_too_long_ends_the_sweep():
    own = study("gated-linear-attention")
    slow = update(own.config, {**SHORT, "form": "recurrent", "patience": 0.001})
    lengths = {name: list(of) for name, of in gated.times(own.run_config()(slow)).items()}
    assert lengths["recurrent"][0] == 256 and max(lengths["recurrent"]) < 2048
    assert all(of == lengths["recurrent"] for of in lengths.values())


@pytest.mark.parametrize("check", [gated.linear_time, gated.overtakes])
def test_what_was_not_timed_up_to_the_longest_is_no_yes(check, monkeypatch):
    """Times without any noise, of which a yes is due as soon as they go far enough."""
    holds = []
    for longest in (4096, gated.LONGEST[True]):
        lengths = [256 << n for n in range(6) if 256 << n <= longest]
        seen = {
            "chunkwise": {length: [length * 1e-6] * 3 for length in lengths},
            gated.SOFTMAX: {length: [length**2 * 2e-8] * 3 for length in lengths},
        }
        monkeypatch.setattr(gated, "times", lambda log, seen=seen: seen)
        monkeypatch.setattr(gated, "swept", lambda *given: None)
        holds.append(check(study("gated-linear-attention").config, None, True).holds)
    assert holds == [False, True]
