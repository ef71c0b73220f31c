"""Kernels compiled beside the first answers, or before them."""

import subprocess
import sys
from textwrap import dedent

import pytest

from engine.kernels.experiments.ready import WEIGHTS, prepare, ready


@pytest.mark.parametrize("kind", WEIGHTS)
def test_a_step_of_nothing_compiles_what_a_model_s_step_runs(kind):
    prepare(kind, kind)
    assert ready(kind, kind)


def test_after_a_warm_up_no_request_compiles():
    """In a process of its own: here others have compiled already."""
    words = """
        import sys
        import numpy as np
        from engine.inference.config import InferenceConfig
        from engine.inference.engine import Engine
        from engine.inference.requests.request import Request, Sampling
        from workbench.live.warm_up import warm_build

        def compiled():
            of = [vars(module).values() for name, module in list(sys.modules.items())
                  if name.startswith("engine.") and module is not None]
            kept = {id(each): len(each.overloads) for values in of for each in values
                    if hasattr(each, "overloads")}
            return sum(kept.values())

        config = InferenceConfig()
        built = warm_build(config)
        before = compiled()
        made = built.executor, built.clock, lambda event: None, built.tokenizer
        engine = Engine(config, *made)
        drawn = Sampling(temperature=0.7, presence_penalty=1, logprobs=3, n=3, max_tokens=40)
        for length, sampling in ((5, Sampling(max_tokens=40)), (70, drawn), (70, drawn)):
            engine.add(Request(np.arange(length, dtype=np.int32), sampling))
            while engine.step():
                pass
        print(before, compiled())
    """
    told = subprocess.run(
        [sys.executable, "-c", dedent(words)], capture_output=True, text=True, check=True
    )
    before, after = map(int, told.stdout.split())
    assert after == before > 8
