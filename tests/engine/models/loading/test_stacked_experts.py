"""gpt-oss folders: experts stored as one tensor, in floats and in MXFP4 blocks kept packed."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.core.errors import BadInput
from engine.kernels.integer_matmul.linears import QuantisedLinear
from engine.kernels.quantised.formats import format_of
from engine.kernels.quantised.weight import nearest
from engine.models.batch import pack
from engine.models.families import read_config
from engine.models.kv import PagedKV
from engine.models.loading.checkpoint import Checkpoint
from engine.models.loading.load import load, save
from engine.models.reference import dense
from tests.engine.models import small

SIZES = {"hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 2}
TOKENS = [3, 5, 8, 2, 9, 60, 33, 7, 4, 1, 12, 90, 55]


def mxfp4(weight_EKN: Tensor) -> tuple[Tensor, Tensor]:
    """Blocks and scales as gpt-oss stores them, near these numbers."""
    parts = weight_EKN.transpose(1, 2).unflatten(2, (-1, 32)).numpy()
    power = np.floor(np.log2(np.abs(parts).max(-1))).astype(np.int32) - 2
    codes = nearest(parts / np.exp2(power)[..., None], format_of("e2m1"))
    blocks = codes[..., 0::2] | codes[..., 1::2] << 4
    scales = np.ascontiguousarray((power + 127).astype(np.uint8))
    return torch.from_numpy(np.ascontiguousarray(blocks)), torch.from_numpy(scales)


def folder(path: Path) -> Path:
    """A small gpt-oss whose experts are MXFP4."""
    config = small.config("gpt-oss", **SIZES)
    save(path, config, small.weights(config))
    tensors = load_file(path / "model.safetensors")
    for name in [n for n in tensors if n.endswith(("gate_up_proj", "down_proj"))]:
        tensors[f"{name}_blocks"], tensors[f"{name}_scales"] = mxfp4(tensors.pop(name))
    save_file(tensors, path / "model.safetensors")
    raw = json.loads((path / "config.json").read_text())
    settings = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    (path / "config.json").write_text(json.dumps(raw | {"quantization_config": settings}))
    return path


def test_experts_of_mxfp4_stay_packed_and_give_transformers_logits(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    where = folder(tmp_path)
    read = Checkpoint(where, read_config(where))
    assert read.holds_codes
    model = load(where)
    [expert, *_] = model.blocks[0].mlp.into
    assert isinstance(expert, QuantisedLinear) and expert.weights[0].format.name == "e2m1"
    kv = PagedKV(model.spec, 4, 16)
    logits = model.forward(pack([TOKENS], [0], [[2]], 16), kv)[0]
    weights = {name: read[name].float() for name in read}
    truth = dense(model.config, weights, torch.tensor([TOKENS]))[0, -1]
    torch.testing.assert_close(logits, truth, rtol=1e-4, atol=1e-5)
    settings = transformers.Mxfp4Config(dequantize=True)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        where, attn_implementation="eager", dtype=torch.float32, quantization_config=settings
    ).eval()
    with torch.no_grad():
        want = theirs(torch.tensor([TOKENS]), use_cache=False).logits[0, -1]
    assert (logits - want).abs().max() < 1e-4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("nan", "scales that are NaN"),
        ("short", "is missing"),
        ("wide", "is missing"),
    ],
)
def test_parts_of_experts_that_do_not_fit_are_refused_in_one_line(
    tmp_path: Path, change: str, words: str
) -> None:
    where = folder(tmp_path)
    tensors = load_file(where / "model.safetensors")
    root = "model.layers.1.mlp.experts.down_proj"
    if change == "nan":
        tensors[f"{root}_scales"][2, 0, 0] = 255
    elif change == "short":
        del tensors[f"{root}_scales"]
    else:
        tensors[f"{root}_blocks"] = tensors[f"{root}_blocks"].flatten(2)
    save_file(tensors, where / "model.safetensors")
    with pytest.raises(BadInput) as caught:
        load(where)
    assert words in str(caught.value) and "\n" not in str(caught.value)
