"""LLaDA's checkpoints: read by their own names, and served in blocks of masks.

Held once against the code published with LLaDA-8B-Instruct (tiny widths, with and without grouped
keys, biases of queries, tied heads; its attention's softmax taken exactly): logits within 2e-5 of
12, and no tensor missing or left over.
"""

import json

import numpy as np
import pytest
import torch

from engine.core.errors import BadInput
from engine.diffusion.joints import Joint
from engine.diffusion.model import Masked, bidirectional
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.policies.unmasking import Entropy
from engine.inference.requests.request import Request, sampling
from engine.models.families import parse
from engine.models.footprint import parameter_count
from engine.models.loading.load import load, random_weights, save
from engine.models.parameters import all_parameters
from engine.models.view_attention import require_views
from tests.engine.diffusion.loop import decode

# What its config.json says that matters here (yinj66/support_basis at fa6c180, MIT).
PUBLISHED = {
    "activation_type": "silu", "alibi": False, "architectures": ["LLaDAModelLM"],
    "attention_layer_norm": False, "block_group_size": 1, "block_type": "llama", "d_model": 4096,
    "embedding_size": 126464, "eos_token_id": 126081, "include_bias": False,
    "include_qkv_bias": False, "input_emb_norm": False, "layer_norm_type": "rms",
    "mask_token_id": 126336, "max_sequence_length": 4096, "mlp_hidden_size": 12288, "mlp_ratio": 4,
    "model_type": "llada", "multi_query_attention": None, "n_heads": 32, "n_kv_heads": 32,
    "n_layers": 32, "rms_norm_eps": 1e-05, "rope": True, "rope_theta": 500000.0,
    "scale_logits": False, "vocab_size": 126464, "weight_tying": False,
}  # fmt: skip
BYTES = 16_031_162_368  # of its weights in bfloat16, as its index says
TINY = PUBLISHED | {
    "d_model": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": 4, "mlp_hidden_size": 48,
    "vocab_size": 60, "embedding_size": 64, "max_sequence_length": 64, "mask_token_id": 50,
    "eos_token_id": 51,
}  # fmt: skip


def test_its_widths_and_names_are_those_published():
    config = parse(PUBLISHED)
    assert 2 * parameter_count(config) == BYTES
    assert (config.mask, config.eos, config.rotary.theta) == ((126336,), (126081,), 500000.0)
    names = [p.name.replace("model.transformer.", "") for p in all_parameters(config)]
    outer, layer = ["wte.weight", "ln_f.weight", "ff_out.weight"], "blocks.31."
    assert names[:3] == outer
    assert [n.removeprefix(layer) for n in names if n.startswith(layer)] == [
        f"{part}.weight"
        for part in ("attn_norm", "q_proj", "k_proj", "v_proj", "attn_out", "ff_norm", "ff_proj",
                     "up_proj", "ff_out")
    ]  # fmt: skip
    assert not any(p.name.endswith("lm_head.weight") for p in all_parameters(config))


@pytest.mark.parametrize(
    ("field", "value"),
    [("alibi", True), ("block_type", "sequential"), ("include_bias", True), ("rope", False),
     ("layer_norm_type", "default"), ("multi_query_attention", True),
     ("n_heads", 1 << 24), ("n_heads", 3)],
)  # fmt: skip
def test_what_its_code_could_do_besides_is_refused(field, value):
    with pytest.raises(BadInput, match=field):
        parse(TINY | {field: value})


def test_a_folder_is_served_and_decides_what_plain_torch_does(tmp_path):
    config = parse(TINY)
    weights = {name: 8.0 * t if t.dim() > 1 else t for name, t in random_weights(config).items()}
    save(tmp_path, config, weights)
    assert json.loads((tmp_path / "config.json").read_text())["mask_token_id"] == 50
    assert load(tmp_path).fused is not None
    asked = InferenceConfig(model=str(tmp_path), pages=32, unmasking={"kind": "entropy"})
    built = asked.executor.build(asked)
    engine, requests = Engine(asked, built.executor, built.clock, [].append), []
    for seed in range(4):
        prompt = np.random.default_rng(seed).integers(0, 50, 3 + seed).astype(np.int32)
        wish = sampling(max_tokens=4 + seed, temperature=1.0, seed=seed, ignore_eos=True)
        requests.append(Request(prompt, wish))
        engine.add(requests[-1])
    engine.run()
    plain = Plain(config, weights)
    for seed, one in enumerate(requests):
        joint = Joint(one.prompt, np.zeros((1, 4 + seed), np.int64))
        steps = list(decode(plain, Entropy(), joint, 1, seed))
        assert one.generated.tolist() == steps[-1].texts_NL[0].tolist()


class Plain(Masked):
    """The model by itself, with its own mask in place of the lists'."""

    def __call__(self, joint, answers_NL, revealed_NL):
        shown_NL = np.where(revealed_NL, answers_NL, 50)
        tokens_NT = np.concatenate([np.tile(joint.prompt, (len(shown_NL), 1)), shown_NL], 1)
        logits_NTV = bidirectional(self.config, self.weights, torch.from_numpy(tokens_NT).long())
        return logits_NTV[:, -answers_NL.shape[1] :].double().softmax(-1).numpy()


def test_threads_over_views_do_not_write_with_it():
    with pytest.raises(BadInput, match="fills in masks; threads over views"):
        require_views(parse(TINY))
