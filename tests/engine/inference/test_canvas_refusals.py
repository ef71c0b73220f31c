"""What a block of masks is not served with is refused in one line."""

import pytest

from engine.core.errors import BadInput
from engine.models.families import parse
from engine.models.loading.load import random_model
from tests.engine.inference.memory import VOCAB
from tests.engine.inference.small import TINY, engine, real_engine, serve
from tests.engine.inference.test_canvas import masked


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"n": 2}, "is not decided by n; leave it out"),
        ({"top_k": 5}, "is not decided by top_k"),
        ({"guidance": 2.0}, "guidance 2 needs a negative_prompt"),
        ({"logprobs": 2}, "is not decided by logprobs"),
        ({"max_tokens": 5000}, "a block of 5000 masks; the model takes 4096 together"),
    ],
)
def test_what_it_does_not_do_is_refused_in_a_line(wish, said):
    held, _ = engine()
    with pytest.raises(BadInput, match=said):
        held.add(masked(4, **{"places": 6, "draw": 1, **_renamed(wish)}))


def _renamed(wish: dict) -> dict:
    return {("places" if name == "max_tokens" else name): value for name, value in wish.items()}


def test_masks_models_and_grammars_that_do_not_fit_are_refused():
    held, _ = engine()
    one = masked(4, 6, 1)
    one.canvas.mask = VOCAB
    with pytest.raises(BadInput, match="mask 50 is no token of 0 to 49"):
        held.add(one)
    scored = masked(4, 6, 1)
    scored.prompt_tops = 0
    with pytest.raises(BadInput, match="no grammar, and its prompt no scores"):
        held.add(scored)
    mistral = {"architectures": ["MistralForCausalLM"], "sliding_window": 8}
    windowed = parse({**TINY, **mistral}, "windowed")
    looks_back, _ = real_engine(random_model(windowed, seed=3))
    with pytest.raises(BadInput, match="does not say what stands at masks"):
        looks_back.add(masked(4, 6, 1))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"step_tokens": 9}, "are 10 tokens, which a step computes at once"),
        ({"speculation": "ngram"}, "serve it without speculation"),
        ({"batching": "fixed_split"}, "choose another batching"),
    ],
)
def test_settings_that_it_cannot_run_under_reject_it(fields, said):
    held, _ = engine(**fields)
    one = masked(4, 6, 1)
    serve(held, [one])
    assert one.state == "rejected" and said in one.reason
