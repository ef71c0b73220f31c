"""The ops that a GPU runs, here by Triton's interpreter: the logits of plain torch."""

import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed here")

from engine.core.errors import BadInput
from engine.models.batch import pack
from engine.models.kv import PagedKV
from engine.models.model import Model
from engine.models.ops import operator_ops, ops_for, plain_ops
from tests.engine.models import small

TRITON = {"matmul": "tiles", "norm": "rows", "rotary": "halves", "swiglu": "rows"}
TRITON |= {"paged_attention": "lean"}
TOKENS = [5, 9, 60, 33, 7]


def logits(model: Model) -> torch.Tensor:
    """Of a prefill of four tokens and a decode of the fifth, over scattered pages."""
    kv = PagedKV(model.spec, pages=4, page_size=2)
    pages = [2, 0, 3]
    first = model.forward(pack([TOKENS[:4]], [0], [pages], 2), kv).clone()
    return torch.cat([first, model.forward(pack([TOKENS[4:]], [4], [pages], 2), kv)])


@pytest.mark.parametrize("name", ["llama-tied-biased", "qwen3", "mixtral", "deepseek-v2-lite"])
def test_interpreted_kernels_give_the_logits_of_plain_torch(name: str) -> None:
    config = small.config(name, num_hidden_layers=2)
    weights = small.weights(config)
    plain = logits(Model(config, weights, plain=True))
    ours = logits(Model(config, weights, ops=operator_ops(TRITON)))
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-4)


def test_half_precision_weights_keep_half_precision_activations() -> None:
    config = small.config("llama-3", num_hidden_layers=1)
    weights = small.weights(config)
    plain = logits(Model(config, weights, "bfloat16", plain=True))
    ours = logits(Model(config, weights, "bfloat16", ops=operator_ops(TRITON)))
    assert float((ours - plain).abs().max()) < 0.03 * float(plain.abs().max())


def test_a_wrong_kernel_would_show() -> None:
    config = small.config("llama-3", num_hidden_layers=1)
    weights = small.weights(config)
    ops = operator_ops(TRITON)
    wrong = type(ops)(
        ops.linear, ops.rms_norm, lambda x, *turn: x, ops.paged_attention, ops.swiglu, ops.wide
    )
    plain, ours = (logits(Model(config, weights, ops=o)) for o in (plain_ops(), wrong))
    assert float((ours - plain).abs().max()) > 1e-2


def test_prompts_and_answers_of_one_batch_go_to_their_kernels(monkeypatch) -> None:
    from engine.models import operator_ops as ours

    plain, seen = ours.paged_attention, []
    monkeypatch.setattr(ours, "paged_attention", lambda *a, **k: seen.append(1) or plain(*a, **k))
    config = small.config("qwen3", num_hidden_layers=2)
    weights, ops = small.weights(config), operator_ops(TRITON | {"attention": "tiles"})
    found = [mixed(Model(config, weights, plain=True)), mixed(Model(config, weights, ops=ops))]
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-4)
    assert not seen, "all went to kernels"


def mixed(model: Model) -> torch.Tensor:
    """A chunk behind cached tokens, an answer, another prompt and an answer, over few pages."""
    kv = PagedKV(model.spec, pages=9, page_size=2)
    tables = [[2, 0, 3], [8, 1], [4, 5, 6], [7]]
    model.forward(pack([TOKENS[:2], TOKENS[:3], [9]], [0, 0, 0], [*tables[:2], tables[3]], 2), kv)
    new = [TOKENS[2:], TOKENS[3:4], TOKENS, [11]]
    return model.forward(pack(new, [2, 3, 0, 1], tables, 2), kv)


def test_prompts_fall_back_to_torch_without_their_kernel(monkeypatch) -> None:
    from engine.models import operator_ops as ours

    plain, seen = ours.paged_attention, []
    monkeypatch.setattr(
        ours, "paged_attention", lambda q_THD, *rest, **more: (
            seen.append(len(q_THD)) or plain(q_THD, *rest, **more)
        )
    )  # fmt: skip
    config = small.config("llama-3", num_hidden_layers=1)
    logits(Model(config, small.weights(config), ops=operator_ops(TRITON)))
    assert seen == [4], "the prompt of four tokens; the decode went to a kernel"


def test_each_device_gets_its_own_ops() -> None:
    assert ops_for("cuda:0", compiled=False).linear.__self__.variants == {}
    assert ops_for("cpu", compiled=False) == plain_ops()
    assert ops_for("cpu", compiled=True).wide


def test_a_variant_that_cannot_run_here_says_so() -> None:
    config = small.config("llama-3", num_hidden_layers=1)
    model = Model(config, small.weights(config), ops=operator_ops({"matmul": "library"}))
    with pytest.raises(BadInput, match="library"):
        logits(model)
