"""Module policies in the serving loop: what is refused, what is told, the same routes whatever
happens to a request."""

import numpy as np
import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Blob, Route, Span
from engine.core.run import Run
from engine.inference.config import InferenceConfig
from engine.inference.oracle.run import LOSS, run
from engine.inference.run import run as serve
from engine.inference.told_modules import TAKEN
from engine.models.loading.find import find

CONFIG = update(
    InferenceConfig(),
    {
        "model": "duo/duo-0", "modules": "router", "modules.big": 1, "pages": 64,
        "workload": "uniform", "workload.count": 2, "workload.shortest": 9,
        "workload.longest": 9, "sampling.max_tokens": 4, "sampling.ignore_eos": True,
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "stdlib-draft-1m"}, "one feed-forward in each layer"),
        ({"modules.big": 9}, "9 of 4 layers"),
        ({"modules": "routes", "modules.routes": "BB"}, "write 4 letters"),
        ({"modules": "routes", "modules.routes": "BBxs"}, "'BBxs' is no route"),
        ({"modules": "routes", "modules.routes": ""}, "'' is no route"),
    ],
)
def test_what_makes_no_sense_is_one_clear_line(changes: dict, said: str) -> None:
    config = update(CONFIG, changes)
    with pytest.raises(BadInput, match=said):
        config.executor.build(config)


def test_a_run_tells_every_tokens_modules_the_oracles_and_what_each_choice_loses() -> None:
    log = Run.execute(run, CONFIG).log
    told = [blob.name for blob in log.of(Blob) if blob.name.startswith(TAKEN)]
    whole = [log.blobs[name] for name in told if name.startswith(f"{TAKEN}r0/")]
    routes_TL = np.concatenate(whole)
    assert routes_TL.shape == (9 + 3, 4) and ((routes_TL == 2).sum(1) == 1).all()
    assert sum(each.counts[2] for each in log.of(Route)) == 2 * (9 + 3)
    twins = [log.blobs[name] for name in told if "hindsight" in name]
    assert len(twins) == 2 and all(((twin == 2).sum(1) == 1).all() for twin in twins)
    oracle, router = (log.blobs[LOSS.name(name)] for name in ("oracle", "router"))
    assert (oracle[1] <= router[1] + 1e-6).all()


def test_a_described_device_counts_a_mean_token() -> None:
    described = {"executor": "modelled", "executor.device": "h100-sxm"}
    one, two = (
        Run.execute(serve, update(CONFIG, {**described, "modules.big": big})).log for big in (1, 2)
    )
    steps = [[s for s in log.of(Span) if s.name == "step"] for log in (one, two)]
    apart = sum(s.flops for s in steps[1]) - sum(s.flops for s in steps[0])
    shape = find(CONFIG.model).config
    wider = 2 * 3 * (shape.width - shape.duo.small) * shape.hidden  # flops of a layer's token
    assert np.isclose(apart, 2 * (9 + 3) * wider)
