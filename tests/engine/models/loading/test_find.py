"""Models by name, by folder and by public shape."""

from pathlib import Path

import pytest

from engine.core.errors import BadInput
from engine.models.loading.find import beside, find, public, shipped
from engine.models.loading.load import save
from tests.engine.models import small


def test_every_public_architecture_reads_and_names_its_source() -> None:
    for name in public():
        found = find(name.upper())
        assert found.config.layers > 1 and found.folder is None and len(found.source) > 10


def test_every_shipped_model_opens() -> None:
    for name in shipped():
        assert find(name).open().config == find(name).config


def test_a_folder_opens_with_its_own_or_random_weights(tmp_path: Path) -> None:
    config = small.config("qwen2")
    save(tmp_path / "mine", config, small.weights(config))
    found = find(str(tmp_path / "mine"))
    assert found.name == "mine" and found.config == config
    own, random = found.open(), found.open(random=True)
    name = "model.norm.weight"
    assert not own.weights[name].equal(random.weights[name])


def test_weights_of_a_public_architecture_must_be_asked_for_as_random() -> None:
    with pytest.raises(BadInput, match="--random"):
        find("gpt2").open()


def test_an_unknown_name_is_one_line_with_close_ones() -> None:
    with pytest.raises(BadInput, match=r"did you mean llama-3\.1-8b"):
        find("lama-3.1-8b")
    with pytest.raises(BadInput, match="among .*agreement-100k"):
        find("")


@pytest.mark.parametrize("name", ["x" * 5000, "x/" * 4000, "~nobody-here/m", "x" * 300 + ".gguf"])
def test_what_no_system_takes_for_a_path_is_an_unknown_name(name: str) -> None:
    with pytest.raises(BadInput, match="no such folder or name") as told:
        find(name)
    assert len(str(told.value)) < 600
    assert beside(name, "duo") == "duo"


def test_a_name_may_be_written_as_people_write_it() -> None:
    for name in ("meta-llama/Meta-Llama-3.1-70B-Instruct", "Llama-3-70B", "llama3.1-70b"):
        assert find(name).name == "llama-3.1-70b"
    assert find("Qwen/Qwen3-30B-A3B").name == "qwen3-30b-a3b"
    assert find("google/gemma-2-9b-it").name == "gemma-2-9b"


def test_a_pickle_named_as_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="pickled"):
        find(str(tmp_path / "pytorch_model.bin"))


def test_a_folder_without_a_config_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"config\.json: no such file"):
        find(str(tmp_path))


def test_an_adapter_beside_weights_is_said_instead_of_left_out(tmp_path: Path) -> None:
    config = small.config("qwen2")
    save(tmp_path / "mine", config, small.weights(config))
    (tmp_path / "mine" / "adapter_config.json").write_text("{}")
    with pytest.raises(BadInput, match="merge them"):
        find(str(tmp_path / "mine"))
