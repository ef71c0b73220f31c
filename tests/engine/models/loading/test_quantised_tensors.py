"""Quantised checkpoints: GPTQ, AWQ and compressed-tensors give the numbers that were put in."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.core.errors import BadInput
from engine.kernels.quantised.weight import Quantised, round_to_nearest
from engine.models.batch import pack
from engine.models.families import read_config
from engine.models.kv import PagedKV
from engine.models.loading.checkpoint import Checkpoint
from engine.models.loading.load import load, random_weights, save
from engine.models.loading.quantised_tensors import AWQ_ORDER, closed, gptq_tensors, turned
from engine.models.reference import dense
from engine.training.quantisation.gptq import gptq, rounded_to_nearest
from tests.engine.models import small

GROUP = 32


def gptq_form(name: str, weight: Quantised) -> dict[str, torch.Tensor]:
    return gptq_tensors(name, weight)


def awq_form(name: str, weight: Quantised) -> dict[str, torch.Tensor]:
    """As AutoAWQ packs: outputs of a word in its own order."""
    root = name.removesuffix("weight")
    zeros_NG = np.zeros_like(weight.scales_NG) if weight.zeros_NG is None else weight.zeros_NG

    def words(codes: np.ndarray) -> torch.Tensor:
        mixed = codes.reshape(len(codes), -1, 8)[..., list(AWQ_ORDER)]
        return torch.from_numpy(closed(np.ascontiguousarray(mixed.reshape(len(codes), -1)), 4))

    return {
        f"{root}qweight": words(turned(weight.codes_NK, 4).T),
        f"{root}qzeros": words((zeros_NG.T + 8).astype(np.uint8)),
        f"{root}scales": torch.from_numpy(weight.scales_NG.T.copy()).half(),
    }


def int8_form(name: str, weight: Quantised) -> dict[str, torch.Tensor]:
    codes = torch.from_numpy(weight.codes_NK.view(np.int8))
    return {name: codes, f"{name}_scale": torch.from_numpy(weight.scales_NG)}


def fp8_form(name: str, weight: Quantised) -> dict[str, torch.Tensor]:
    codes = torch.from_numpy(weight.codes_NK).view(torch.float8_e4m3fn)
    return {name: codes, f"{name}_scale": torch.from_numpy(weight.scales_NG)}


def words_form(name: str, weight: Quantised) -> dict[str, torch.Tensor]:
    words = closed(turned(weight.codes_NK, 4), 4)
    return {
        f"{name}_packed": torch.from_numpy(words),
        f"{name}_scale": torch.from_numpy(weight.scales_NG),
    }


TENSORS = "compressed-tensors"
FORMS = {
    "gptq-4": (gptq_form, {"quant_method": "gptq", "bits": 4, "group_size": 32}, "int4", False),
    "gptq-8-zero": (gptq_form, {"quant_method": "gptq", "bits": 8, "group_size": 32}, "int8", True),
    "awq": (awq_form, {"quant_method": "awq", "bits": 4, "group_size": 32}, "int4", True),
    "int8": (int8_form, {"quant_method": TENSORS, "format": "int-quantized"}, "int8", False),
    "fp8": (fp8_form, {"quant_method": TENSORS, "format": "float-quantized"}, "e4m3", False),
    "words": (words_form, {"quant_method": TENSORS, "format": "pack-quantized"}, "int4", False),
}


def folder(tmp_path: Path, kind: str) -> tuple[Path, dict[str, torch.Tensor]]:
    """A small Llama in that form; its weights as plain numbers."""
    form, settings, name, zero = FORMS[kind]
    raw = small.raw("llama-2") | {
        "hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32,
        "intermediate_size": 96,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(raw))
    config = read_config(tmp_path)
    weights = random_weights(config, 1)
    save(tmp_path, config, weights)
    tensors = load_file(tmp_path / "model.safetensors")
    for each in [n for n in tensors if "proj" in n]:
        codes = rounded_to_nearest(tensors.pop(each), name, GROUP, zero)
        tensors |= form(each, codes)
        weights[each] = codes.dequantised()
    save_file(tensors, tmp_path / "model.safetensors")
    written = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(written | {"quantization_config": settings}))
    return tmp_path, weights


@pytest.mark.parametrize("kind", FORMS)
def test_a_quantised_checkpoint_gives_the_numbers_that_were_put_in(tmp_path, kind):
    where, weights = folder(tmp_path, kind)
    read = Checkpoint(where, read_config(where))
    assert read.holds_codes
    for name, weight in weights.items():
        torch.testing.assert_close(read[name].float(), weight, rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["gptq-4", "fp8"])
def test_a_model_runs_on_its_codes_as_the_reference_does_on_their_numbers(tmp_path, kind):
    where, weights = folder(tmp_path, kind)
    model = load(where)
    assert model.fused is not None
    tokens = [3, 5, 8, 2, 9]
    logits = model.forward(pack([tokens], [0], [[0]], 16), PagedKV(model.spec, 1, 16))
    truth = dense(model.config, weights, torch.tensor([tokens]))[0, -1]
    torch.testing.assert_close(logits[0], truth, rtol=1e-4, atol=1e-5)


def test_a_bias_beside_codes_that_the_config_leaves_out_is_refused(tmp_path):
    where, _ = folder(tmp_path, "gptq-4")
    held, name = load_file(where / "model.safetensors"), "model.layers.0.self_attn.q_proj.bias"
    save_file(held | {name: torch.zeros(64)}, where / "model.safetensors")
    Checkpoint(where, read_config(where))  # as quantisers write them
    save_file(held | {name: torch.ones(64)}, where / "model.safetensors")
    with pytest.raises(BadInput, match="is added to what is read"):
        Checkpoint(where, read_config(where))


def test_a_method_that_is_not_read_is_refused_in_one_line(tmp_path):
    where, _ = folder(tmp_path, "gptq-4")
    raw = json.loads((where / "config.json").read_text())
    for settings in ({"quant_method": "fp8"}, {"quant_method": "bitsandbytes"}, {}, "gptq", 4):
        (where / "config.json").write_text(json.dumps(raw | {"quantization_config": settings}))
        with pytest.raises(BadInput, match="supported are gptq, awq, compressed-tensors"):
            load(where)


@pytest.mark.parametrize(
    ("settings", "part", "value", "words"),
    [
        ({"bits": 3}, None, None, "bits; 2, 4 and 8 are read"),
        ({"bits": "4"}, None, None, "bits; 2, 4 and 8 are read"),
        ({"group_size": 0}, None, None, "groups of 0"),
        ({"group_size": 64}, None, None, "groups out of order"),
        ({"group_size": 1 << 70}, None, None, "groups of 1180"),
        ({}, "g_idx", torch.zeros(64, dtype=torch.int32), "desc_act"),
        ({}, "qweight", torch.zeros(4, 64, dtype=torch.int32), "codes; config.json asks"),
        ({}, "scales", torch.full((2, 64), float("nan")), "no numbers"),
        ({}, "scales", torch.ones(1), "another shape"),
        ({}, "qzeros", torch.zeros(3, dtype=torch.int32), "two dimensions"),
        ({}, "qzeros", torch.zeros(0, 8, dtype=torch.int32), "zeros of another shape"),
    ],
)
def test_parts_that_do_not_fit_are_refused_in_one_line(tmp_path, settings, part, value, words):
    where, _ = folder(tmp_path, "gptq-4")
    root = "model.layers.0.self_attn.q_proj."
    raw = json.loads((where / "config.json").read_text())
    raw["quantization_config"] |= settings
    (where / "config.json").write_text(json.dumps(raw))
    if part:
        tensors = load_file(where / "model.safetensors") | {root + part: value}
        save_file(tensors, where / "model.safetensors")
    read = Checkpoint(where, read_config(where))
    with pytest.raises(BadInput) as caught:
        read[root + "weight"]
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_gptq_errs_less_on_what_a_layer_is_fed_than_rounding_to_nearest():
    draw = torch.Generator().manual_seed(0)
    mix = torch.randn(64, 64, generator=draw)
    x_MK = torch.randn(400, 64, generator=draw) @ mix
    weight_NK = torch.randn(32, 64, generator=draw)
    plain = rounded_to_nearest(weight_NK, "int4", 32, False)
    ours = gptq(weight_NK, x_MK.T @ x_MK, "int4", 32)
    errors = [float((x_MK @ (q.dequantised() - weight_NK).T).norm()) for q in (ours, plain)]
    assert errors[0] < 0.8 * errors[1]
    loose = round_to_nearest(weight_NK, "int4", 32)
    assert (np.abs(loose.scales_NG - plain.scales_NG) <= loose.scales_NG * 1e-3).all()
