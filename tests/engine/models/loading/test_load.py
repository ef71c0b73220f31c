"""Folders in, models out; folders out, models in; and every bad folder is one line."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.core.errors import BadInput
from engine.core.limits import changed
from engine.models.batch import pack
from engine.models.kv import PagedKV
from engine.models.loading.load import load, random_model, save
from engine.models.loading.safetensors_file import ALSO
from engine.models.model import Model
from engine.models.reference import dense
from tests.engine.models import small


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A saved small Llama."""
    config = small.config("llama-3")
    save(tmp_path / "m", config, small.weights(config))
    return tmp_path / "m"


def logits(model: Model, tokens: list[int]) -> torch.Tensor:
    kv = PagedKV(model.spec, 8, 8)
    batch = pack([tokens], [0], [list(range(8))], 8)
    batch.logits_at_R = np.arange(len(tokens), dtype=np.int32)
    return model.forward(batch, kv)


def rewrite(folder: Path, change) -> None:
    """Change the header of the folder's safetensors file."""
    path = folder / "model.safetensors"
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    text = change(header)
    text = (text if isinstance(text, str) else json.dumps(header)).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def refused(folder: Path) -> str:
    with pytest.raises(BadInput) as caught:
        load(folder)
    message = str(caught.value)
    assert "\n" not in message and str(folder.name) in message
    return message


def test_a_saved_model_loads_again_with_the_same_weights(folder: Path) -> None:
    config = small.config("llama-3")
    model = load(folder)
    assert model.config == config
    for name, tensor in small.weights(config).items():
        assert torch.equal(model.weights[name], tensor)


def test_a_model_does_not_share_memory_with_the_weights_it_was_made_from() -> None:
    config = small.config("llama-3")
    weights = small.weights(config)
    model = Model(config, weights)
    before = logits(model, [3, 4, 5])
    for tensor in weights.values():
        tensor.zero_()
    assert torch.equal(logits(model, [3, 4, 5]), before)


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16, torch.float64])
def test_half_and_double_checkpoints_become_the_asked_type(folder: Path, stored) -> None:
    path = folder / "model.safetensors"
    narrow = {name: tensor.to(stored) for name, tensor in load_file(path).items()}
    save_file(narrow, path)
    model = load(folder, "float32")
    want = dense(model.config, {n: t.float() for n, t in narrow.items()}, torch.tensor([[3, 4, 5]]))
    assert (logits(model, [3, 4, 5]) - want[0]).abs().max() < 1e-5


def test_a_bfloat16_model_stays_near_its_float32_twin(folder: Path) -> None:
    wide, narrow = load(folder), load(folder, "bfloat16")
    assert narrow.spec.bytes_per_token() * 2 == wide.spec.bytes_per_token()
    difference = logits(narrow, [3, 4, 5]) - logits(wide, [3, 4, 5])
    assert difference.abs().max() < 0.1 * logits(wide, [3, 4, 5]).abs().max()


@pytest.mark.parametrize("indexed", [True, False])
def test_sharded_checkpoints_load_with_and_without_an_index(folder: Path, indexed: bool) -> None:
    want = logits(load(folder), [3, 4, 5])
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    placed = {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file)
        placed |= dict.fromkeys(part, file)
    if indexed:
        index = {"metadata": {}, "weight_map": placed}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert torch.equal(logits(load(folder), [3, 4, 5]), want)


def test_a_checkpoint_without_the_first_part_of_its_names_loads(tmp_path: Path) -> None:
    config = small.config("gpt2")
    save(tmp_path, config, small.weights(config))
    path = tmp_path / "model.safetensors"
    bare = {name.removeprefix("transformer."): t for name, t in load_file(path).items()}
    save_file(bare | {"h.0.attn.bias": torch.ones(1, 1, 4, 4)}, path)
    want = dense(config, small.weights(config), torch.tensor([[3, 4]]))[0]
    assert (logits(load(tmp_path), [3, 4]) - want).abs().max() < 1e-4


def test_pickled_weights_are_refused_with_a_way_out(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    message = refused(folder)
    assert "pytorch_model.bin" in message and "save_pretrained" in message
    with pytest.raises(BadInput, match="pickled"):
        load(folder / "weights.pt")


def test_a_missing_tensor_is_named(folder: Path) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    del tensors["model.layers.1.self_attn.k_proj.weight"]
    save_file(tensors, path)
    assert "'model.layers.1.self_attn.k_proj.weight' is missing" in refused(folder)


def test_a_wrong_shape_is_named_with_both_shapes(folder: Path) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors["model.norm.weight"] = torch.ones(31)
    save_file(tensors, path)
    message = refused(folder)
    assert "'model.norm.weight'" in message and "[31]" in message and "[32]" in message


@pytest.mark.parametrize("kept", [0, 7, 8, 100, 5000, -1])
def test_a_truncated_file_is_refused_wherever_it_ends(folder: Path, kept: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    assert "model.safetensors" in refused(folder)


NORM = "model.norm.weight"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda h: h[NORM].update(data_offsets=[0, 128]), "overlaps"),
        (lambda h: h[NORM].update(data_offsets=[0, 1 << 61]), "bytes of data"),
        (lambda h: h[NORM].update(data_offsets=[0, 1 << 63]), "valid data_offsets"),
        (lambda h: h[NORM].update(shape=[1 << 61, 1 << 61]), "has shape"),
        (lambda h: h[NORM].update(shape=[-32]), "valid shape"),
        (lambda h: h[NORM].update(shape=[16]), "has shape [16]"),
        (lambda h: h[NORM].update(shape=[32.0]), "valid shape"),
        (lambda h: h[NORM].update(shape=[1] * 9 + [32]), "valid shape"),
        (lambda h: h[NORM].update(dtype="F31"), "unknown dtype"),
        (lambda h: h[NORM].update(data_offsets=[128]), "valid data_offsets"),
        (lambda h: h[NORM].update(data_offsets=[128, 0]), "valid data_offsets"),
        (lambda h: h.update({NORM: 3}), "no description"),
        (lambda h: h.pop(NORM) and None, "after the last tensor"),
        (lambda h: h.pop("lm_head.weight") and None, "follows bytes of no tensor"),
        (lambda h: json.dumps(h)[:-1] + ', "model.norm.weight": {}}', "twice"),
        (lambda h: "[" * 100_000, "not JSON"),
        (lambda h: "[]", "not an object"),
        (lambda h: '{"a": \xff}', "not JSON"),
        (lambda h: '{"a": ' + "9" * 5000 + "}", "not JSON"),
    ],
)
def test_a_damaged_header_is_refused_before_anything_is_read(folder: Path, change, told) -> None:
    rewrite(folder, change)
    assert told in refused(folder)


def test_a_header_longer_than_the_file_is_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 1 << 63) + path.read_bytes()[8:])
    assert f"header of {1 << 63} bytes" in refused(folder)


def test_quantised_tensors_are_refused_by_name(folder: Path) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    save_file(tensors | {NORM: torch.ones(32, dtype=torch.int8)}, path)
    assert f"{NORM!r} is I8" in refused(folder)


@pytest.mark.parametrize(
    "name",
    [
        "../other.safetensors",
        "/etc/passwd",
        "a/b.safetensors",
        "x\0.safetensors",
        "x.bin",
        "\ud800.safetensors",
    ],
)
def test_an_index_that_points_outside_the_folder_is_refused(folder: Path, name: str) -> None:
    index = {"weight_map": {NORM: name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "only files of the folder" in refused(folder)


@pytest.mark.parametrize("each", ['"a%d":{}', '"a%d":{"data_offset\\u0073":[]}'])
def test_a_header_of_very_many_objects_is_refused_before_they_are_made(folder: Path, each) -> None:
    text = "{" + ",".join(each % at for at in range(3000)) + "}"
    rewrite(folder, lambda header: text)
    with changed(tensors=2000):
        assert "limit tensors=2000" in refused(folder)


def test_a_header_of_very_many_numbers_is_refused_before_they_are_made(folder: Path) -> None:
    rewrite(folder, lambda header: f'{{"a":{{"shape":[{"1," * (ALSO + 99)}1]}}}}')
    assert "more than its tensors" in refused(folder)


def test_a_config_of_very_many_values_is_refused_before_they_are_made(folder: Path) -> None:
    (folder / "config.json").write_text(f'{{"a":[{"[]," * 3000}1]}}')
    with changed(config_entries=2000):
        assert "limit config_entries=2000" in refused(folder)


def test_a_link_that_leads_outside_the_folder_is_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    outside = folder.parent / "elsewhere.safetensors"
    path.rename(outside)
    path.symlink_to(outside)
    assert "leads outside" in refused(folder)


def test_links_of_the_hugging_face_cache_are_followed(folder: Path) -> None:
    blobs = folder.parent / "blobs"
    snapshot = folder.parent / "snapshots" / "abc"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for file in ("config.json", "model.safetensors"):
        (folder / file).rename(blobs / file[:6])
        (snapshot / file).symlink_to(f"../../blobs/{file[:6]}")
    assert load(snapshot).config.layers == 3


def test_an_index_that_places_a_tensor_wrongly_is_refused(folder: Path) -> None:
    index = {"weight_map": {"model.norm.bias": "model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "places it there" in refused(folder)


def test_a_model_larger_than_memory_is_refused_before_it_is_made() -> None:
    config = small.config("llama-2", hidden_size=1 << 20, intermediate_size=1 << 22, head_dim=64)
    with pytest.raises(BadInput, match="GiB"):
        random_model(config)


def test_a_folder_or_config_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(BadInput, match=r"config\.json: no such file"):
        load(tmp_path)
