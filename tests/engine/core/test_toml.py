import os
import tomllib

import pytest

from engine.core.errors import BadInput
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


@pytest.mark.parametrize(
    "text",
    ["a=" + "[" * 50_000, "a=" + "[" * 200 + "]" * 200, "a=" + "{a=" * 200 + "1" + "}" * 200,
     "a" + ".a" * 20_000 + "=1", '[a."b c"' + " . 'd'" * 200 + "]"],
)  # fmt: skip
def test_what_lies_too_deep_is_refused_before_it_costs_anything(tmp_path, text):
    path = tmp_path / "deep.toml"
    path.write_text(text)
    with pytest.raises(BadInput, match="over the limit nesting=100"):
        load(path)
    path.write_text("a" + ".a" * 90 + "=1")
    assert load(path)


def test_days_are_texts_and_numbers_and_files_beyond_measure_are_refused(tmp_path):
    path = tmp_path / "facts.toml"
    path.write_text("a = [1979-05-27]\n[b]\nc = 07:32:00\nd = {e = 1979-05-27T07:32:00Z}\n")
    told = {"a": ["1979-05-27"], "b": {"c": "07:32:00", "d": {"e": "1979-05-27T07:32:00+00:00"}}}
    assert load(path) == told
    path.write_text("a = " + "9" * 5000)
    with pytest.raises(BadInput, match="thousands of digits"):
        load(path)
    path.write_text("".join(f"k{n} = 1\n" for n in range(200_000)))
    with pytest.raises(BadInput, match="over the limit toml_bytes"):
        load(path)
