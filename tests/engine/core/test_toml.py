import os
import tomllib

import pytest

from engine.core.toml import load


def test_a_file_is_read_again_when_it_has_changed_and_copies_are_the_callers_own(tmp_path):
    path = tmp_path / "facts.toml"
    path.write_text("[a]\nb = [1]\n")
    load(path)["a"]["b"].append(2)
    assert load(path) == {"a": {"b": [1]}}
    path.write_text("[a]\nb = [3]\n")
    os.utime(path, ns=(1, 1))
    assert load(path) == {"a": {"b": [3]}}


def test_what_is_no_toml_is_told_as_the_parser_tells_it(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("a = ")
    with pytest.raises(tomllib.TOMLDecodeError):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.toml")
