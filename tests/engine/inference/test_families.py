"""Families that norm, rotate and see in their own ways say the same however scheduled."""

import pytest

from engine.core.errors import BadInput
from engine.core.events import Branch
from engine.inference.requests.request import Request
from engine.models.model import Model
from engine.models.view_attention import require_views
from engine.training.parallel.tensor.shards import supported
from tests.engine.inference.small import real_engine, request, serve
from tests.engine.models import small

FAMILIES = (
    "gemma-3", "olmo-3", "exaone-4", "phi-4-part", "granite", "smollm3",
    "glm-4-moe", "minimax-m2", "gpt-oss", "qwen3-next", "qwen3.5",
    "deepseek-v3.2", "nemotron-h", "gemma-4",
)  # fmt: skip
YIELDING = ({"preemption": "recompute"}, {"preemption": "swap", "host_pages": 64})


def job() -> list[Request]:
    wish = {"max_tokens": 9, "ignore_eos": True}
    return [request(7 + 6 * draw, draw % 3, 97, **wish) for draw in range(3)]


@pytest.fixture(params=FAMILIES, scope="module")
def family(request):
    return request.param


@pytest.fixture(scope="module")
def model(family):
    config = small.config(family)
    return Model(config, small.weights(config))


def test_answers_are_the_same_alone_in_chunks_and_after_yielding(family, model, full):
    """One family yields in one way, the next in the other, the same at each commit; with --full
    each in both."""
    alone = [serve(real_engine(model, prefix_sharing=False)[0], [one])[0] for one in job()]
    assert serve(real_engine(model, pages=200, step_tokens=9)[0], job()) == alone
    one = YIELDING[FAMILIES.index(family) % len(YIELDING)]
    for fields in YIELDING if full else (one,):
        held, events = real_engine(model, pages=7, step_tokens=16, **fields)
        assert serve(held, job()) == alone
        states = {e.state for e in events if isinstance(e, Branch)}
        assert states & {"preempted", "swapped"}, "nobody yielded"


def test_forks_go_on_as_their_prompt_would(model):
    one = request(13, 1, 97, n=3, max_tokens=9, ignore_eos=True)
    alone = serve(real_engine(model)[0], [request(13, 1, 97, max_tokens=9, ignore_eos=True)])[0]
    held, _ = real_engine(model, pages=200)
    held.add(one)
    every = {}
    while held.step():
        every |= held.requests
    assert [thread.generated.tolist() for thread in every.values()] == [alone] * 3


def test_what_does_not_know_them_says_so_in_one_line(model):
    for refuses in (require_views, supported):
        with pytest.raises(BadInput, match=model.config.unusual) as caught:
            refuses(model.config)
        assert "\n" not in str(caught.value)
