"""What a config.json may say, and what is told when it says something else."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import BadInput
from engine.models.config import Rotary
from engine.models.families import FAMILIES, parse, read_config
from engine.models.parameters import all_parameters
from engine.models.rotary import frequencies
from tests.engine.models import small


@pytest.mark.parametrize("name", list(small.FAMILIES))
def test_a_config_reads_the_same_twice_and_can_be_a_key(name: str) -> None:
    assert small.config(name) == small.config(name)
    assert len({small.config(name), small.config(name)}) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_size", None),
        ("hidden_size", -32),
        ("hidden_size", 0),
        ("hidden_size", "32"),
        ("hidden_size", True),
        ("hidden_size", 1e300),
        ("num_hidden_layers", 1 << 40),
        ("num_key_value_heads", 3),
        ("rms_norm_eps", "tiny"),
        ("rms_norm_eps", float("nan")),
        ("rms_norm_eps", -1e-5),
        ("rms_norm_eps", 0),
        ("rms_norm_eps", 1e-46),
        ("bos_token_id", 97),
        ("eos_token_id", [2, 1 << 70]),
        ("mask_token_id", 97),
        ("head_dim", 7),
        ("hidden_act", "sine"),
        ("tie_word_embeddings", "yes"),
        ("rope_theta", 0),
        ("rope_scaling", "linear"),
        ("rope_scaling", {"type": "linear", "factor": 0}),
        ("rope_scaling", {"type": "mirror", "factor": 2}),
        ("rope_scaling", {"type": "y" * 5000, "factor": 2}),
        ("rope_scaling", {"type": "yarn", "factor": 2, "rope_theta": 1.0}),
        ("rope_scaling", {"type": "llama3", "factor": 2, "high_freq_factor": 1.0}),
        ("eos_token_id", [-1]),
        ("eos_token_id", "</s>"),
        ("quantization_config", {"quant_method": "fp8"}),
        ("torch_dtype", 4),
    ],
)
def test_a_bad_field_is_named(field: str, value: Any) -> None:
    raw = small.raw("llama-2") | {field: value}
    if value is None:
        del raw[field]
    with pytest.raises(BadInput) as caught:
        parse(raw, "m/config.json")
    message = str(caught.value)
    named = {
        "rope_scaling": ("rope_scaling", "rope_type", "rope_theta", "factor", "high_freq_factor")
    }.get(field, (field,))
    assert "m/config.json" in message and any(repr(name) in message for name in named)
    assert len(message) < 500


def test_dynamic_frequencies_are_numbers_at_every_factor() -> None:
    """Up to the pretrained positions they are the plain ones; 2³¹ - (2³¹ - 1) was 0 in float32."""
    seen = torch.arange(1.0, 300.0)
    for factor in (1.0, 3.0, float(1 << 31), 1e12):
        rotary = Rotary(8, kind="dynamic", factor=factor, original_positions=128)
        found_TF = frequencies(rotary, seen)
        assert torch.isfinite(found_TF).all()
        assert (found_TF[:128] == frequencies(Rotary(8))).all()


@pytest.mark.parametrize(
    ("field", "value"),
    [("n_group", 3), ("topk_group", 5), ("num_experts_per_tok", 9), ("n_group", 8)],
)
def test_experts_that_cannot_be_grouped_are_refused(field: str, value: int) -> None:
    with pytest.raises(BadInput, match=f"{field}"):
        small.config("deepseek-v3", **{field: value})


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        *((name, "layer_types", [[], {}, []]) for name in ("qwen3-next", "qwen3.5", "qwen3.5-moe")),
        ("glm-5", "indexer_types", 7),
        ("glm-5", "indexer_types", [["full"]]),
        ("qwen3-moe", "mlp_only_layers", [1.0]),
        ("qwen3-moe", "mlp_only_layers", ["1"]),
        ("exaone-4", "sliding_window_pattern", "LGL"),
        ("gpt2", "layer_norm_epsilon", 0),
        ("gemma-4-wide", "head_dim", 1),
    ],
)
def test_what_a_family_cannot_hold_is_refused(name: str, field: str, value: Any) -> None:
    with pytest.raises(BadInput, match=field):
        small.config(name, **{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [("vocab_size_per_layer_input", 96), ("per_layer_config", {"9" * 5000: {}})],
)
def test_what_gemma_4_tells_of_its_layers_is_held_to_the_model(field: str, value: Any) -> None:
    with pytest.raises(BadInput, match=field):
        small.config("gemma-4", **{field: value})


def test_an_unknown_architecture_lists_those_supported() -> None:
    with pytest.raises(BadInput) as caught:
        parse({"architectures": ["MambaForCausalLM"]})
    assert "MambaForCausalLM" in str(caught.value)
    assert all(name.removesuffix("ForCausalLM") in str(caught.value) for name in FAMILIES)


def test_a_config_without_architectures_goes_by_its_model_type() -> None:
    raw = small.raw("qwen3")
    del raw["architectures"]
    assert parse(raw | {"model_type": "qwen3"}).architecture == "Qwen3ForCausalLM"


def test_remote_code_is_never_kept() -> None:
    config = small.config("llama-2", auto_map={"AutoModelForCausalLM": "evil.Model"})
    assert "auto_map" not in config.raw


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 10**6, '{"a": NaN', "\x00", "9" * 10**5])
def test_a_config_that_is_not_json_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(BadInput, match=r"config\.json"):
        read_config(tmp_path)


def test_the_newer_spelling_of_rope_reads_the_same() -> None:
    old = small.raw("llama-3")
    new = {k: v for k, v in old.items() if not k.startswith("rope")}
    new["rope_parameters"] = old["rope_scaling"] | {"rope_theta": old["rope_theta"]}
    assert parse(new) == parse(old)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_value_in_any_field_is_read_or_refused_in_one_line(data: st.DataObject) -> None:
    raw = json.loads(json.dumps(small.raw(data.draw(st.sampled_from(list(small.FAMILIES))))))
    extra = ["rope_scaling", "rope_parameters", "layer_types", "mlp_only_layers", "bos_token_id"]
    extra += ["indexer_types", "no_rope_layers", "per_layer_config", "sliding_window_pattern"]
    for field in data.draw(st.lists(st.sampled_from([*raw, *extra]), min_size=1, max_size=3)):
        raw[field] = data.draw(junk)
    try:
        config = parse(raw)
    except BadInput as error:
        assert "\n" not in str(error)
    else:
        next(iter(all_parameters(config)))
