"""Models that keep a recurrent state: joined where it was kept, refused where it cannot go."""

import pytest

from engine.core.errors import BadInput
from engine.core.events import Page
from engine.fleet.config import FleetConfig
from engine.fleet.run import build
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built
from engine.inference.executors.modelled import Modelled
from engine.models.loading.load import save
from engine.models.model import Model
from tests.engine.inference.small import real_engine, request, serve
from tests.engine.models import small


@pytest.fixture(scope="module", params=["qwen3.5", "nemotron-h"])
def model(request):
    config = small.config(request.param)
    return Model(config, small.weights(config))


def test_a_prefix_is_joined_where_its_state_was_kept_and_the_answer_is_the_same(model):
    wish = {"max_tokens": 5, "ignore_eos": True}
    first, second, third = (request(23, 1, 97, **wish) for _ in range(3))
    second.prompt[14:], third.prompt[14:] = 5, 7
    alone = [serve(real_engine(model, prefix_sharing=False)[0], [one])[0]
             for one in (request(23, 1, 97, **wish),)]  # fmt: skip
    held, events = real_engine(model)
    reused = []
    for one in (first, second, third):
        answer = serve(held, [one])[0]
        reused.append(one.reused)
        clean = real_engine(model, prefix_sharing=False)[0]
        again = request(23, 1, 97, **wish)
        again.prompt[:] = one.prompt
        assert serve(clean, [again])[0] == answer
    assert serve(held, [request(23, 1, 97, **wish)]) == alone
    # The second finds the pages but no state where it leaves the first; the third finds both.
    assert reused == [0, 0, 12]
    kinds = {event.state for event in events if isinstance(event, Page) and event.kind}
    assert {"take", "index", "hit", "copy"} <= kinds


@pytest.mark.parametrize(
    "fields",
    [{"speculation": {"kind": "ngram", "branches": 2}}, {"attention_every": 1}],
    ids=["trees", "probe"],
)
def test_what_cannot_go_with_a_state_is_one_line(model, fields):
    with pytest.raises(BadInput, match="recurrent state") as caught:
        real_engine(model, **fields)
    assert "\n" not in str(caught.value)


def test_a_described_device_counts_states_and_refuses_ranks():
    def built(**ranks: int) -> Built:
        device = Modelled(device="h200-sxm", **ranks)
        config = InferenceConfig(model="qwen3-next-80b-a3b", dtype="bfloat16", max_running=8)
        return device.build(config)

    with pytest.raises(BadInput, match="recurrent state"):
        built(tensor_parallel=2)
    with pytest.raises(BadInput, match="do not fit"):
        built()


def test_a_modelled_run_verifies_drafts_and_says_the_same(model, tmp_path):
    save(tmp_path, model.config, small.weights(model.config))
    said, steps = [], []
    for how in ("none", {"kind": "ngram", "tokens": 4, "acceptance": 0.9}):
        config = InferenceConfig(model=str(tmp_path), executor=Modelled(), speculation=how)
        built = config.executor.build(config)
        held = Engine(config, built.executor, built.clock, [].append)
        said.append(serve(held, [request(9, 1, 97, max_tokens=40, ignore_eos=True)]))
        steps.append(held.number)
    assert said[0] == said[1] and steps[1] < steps[0] / 2


def test_replicas_that_would_send_a_state_to_one_another_are_refused(model, tmp_path):
    save(tmp_path, model.config, small.weights(model.config))
    engine = InferenceConfig(model=str(tmp_path), executor=Modelled(), workload="uniform")
    for pools, refused in (("prefill_decode", True), ("together", False)):
        config = FleetConfig(engine=engine, replicas=8, pools=pools)
        if refused:
            with pytest.raises(BadInput, match="recurrent state"):
                build(config)
        else:
            assert build(config).executor(0).facts.bytes_per_state == model.spec.bytes_per_state()
