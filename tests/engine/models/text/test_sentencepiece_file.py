"""A folder with `tokenizer.model` alone: ids as the sentencepiece library's own, foreign bytes held
to limits.

`sentencepiece/` holds small models trained by that library on this project's README and the ids it
gave for odd texts (0.2.3, not needed here): bpe with bytes, bpe with pieces of a maker's own,
unigram with a table of characters, unigram without bytes.
"""

import base64
import json
import random
import shutil
import time
from pathlib import Path

import pytest

from engine.core.errors import BadInput
from engine.models.text import sentencepiece_file
from engine.models.text.sentencepiece_file import _fields
from engine.models.text.tokenizer import Tokenizer, has_tokenizer

HERE = Path(__file__).parent / "sentencepiece"
KNOWN = json.loads((HERE / "expected.json").read_text("utf-8"))


def folder(tmp_path, data, **settings):
    place = tmp_path / "model"
    place.mkdir(exist_ok=True)
    (place / "tokenizer.model").write_bytes(data)
    (place / "tokenizer_config.json").write_text(json.dumps(settings))
    return place


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def field(number, value):
    """A field of protobuf's wire format: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def piece(text, kind=1, score=b"\0\0\0\0"):
    return field(1, field(1, text.encode()) + b"\x15" + score + field(3, kind))


@pytest.mark.parametrize("name", sorted(KNOWN["ids"]))
def test_ids_are_sentencepiece_s(tmp_path, name):
    tokenizer = Tokenizer(folder(tmp_path, (HERE / f"{name}.model").read_bytes()))
    for text, ids in zip(KNOWN["texts"], KNOWN["ids"][name], strict=True):
        assert tokenizer.encode(text, special=False) == ids, ascii(text)
    assert (tokenizer.bos, tokenizer.eos) == ((1,), (2,))


@pytest.mark.parametrize("name", ["llama", "gemma"])
def test_a_text_comes_back_whole_and_in_pieces(tmp_path, name):
    tokenizer = Tokenizer(folder(tmp_path, (HERE / f"{name}.model").read_bytes()))
    for text in KNOWN["texts"]:
        ids, stream = tokenizer.encode(text), tokenizer.stream()
        assert tokenizer.decode(ids) == text
        assert "".join([*map(stream.push, ids), stream.flush()]) == text


def test_what_is_put_around_and_added_behind_is_the_settings_word(tmp_path):
    data = (HERE / "llama.model").read_bytes()
    plain = Tokenizer(folder(tmp_path, data))
    assert plain.encode("a")[0] == 1 and plain.encode("a")[-1] != 2
    added = {"420": {"content": "<|turn|>", "special": True}}
    told = {"add_bos_token": False, "add_eos_token": True, "eos_token": "<|turn|>"}
    more = Tokenizer(folder(tmp_path, data, added_tokens_decoder=added, **told))
    assert more.vocab == 421 and more.eos == (420,) and more.bos == (1,)
    assert more.encode("a<|turn|>")[-2:] == [420, 2]
    assert more.encode("a")[:-1] == plain.encode("a")[1:]
    added = {"500": {"content": "<|turn|>"}}
    with pytest.raises(BadInput, match="is no token 500"):
        Tokenizer(folder(tmp_path, data, added_tokens_decoder=added))


def test_a_folder_s_own_rules_come_first(tmp_path):
    place = folder(tmp_path, b"damaged")
    assert has_tokenizer(place)
    with pytest.raises(BadInput):
        Tokenizer(place)
    from engine.core.paths import dataset

    shutil.copy(dataset("models/agreement-100k") / "tokenizer.json", place)
    assert Tokenizer(place).encode("a", special=False)


BOMBS = {
    "a word model": (HERE / "word.model").read_bytes(),
    "a long text for a character": (HERE / "bomb.model").read_bytes(),
    "nothing": b"",
    "a number for a piece": field(1, 5),
    "a text for a kind": field(1, field(1, b"a") + field(3, b"x")),
    "a length past the end": varint(1 << 3 | 2) + varint(1 << 60) + b"x",
    "a number without end": b"\x08" + b"\xff" * 5000,
    "groups": bytes([3 << 3 | 3]) * 5000,
    "no UTF-8": field(1, field(1, b"\xff\xfe")),
    "a score that is none": piece("a", score=b"\0\0\xc0\x7f"),
    "a piece twice": piece("a") + piece("a"),
    "a long piece": piece("a" * 100_000),
    "pieces beyond count": b"\x0a\x00" * 10_001,
    "blanks behind": piece("a") + field(2, field(24, 1)),
    "a table cut off": piece("a") + field(3, field(2, b"\xff\xff\xff\xff\0")),
    "fields beyond count": field(9, 1) * 100_000 + field(1, 5),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_no_model_is_one_line_soon(tmp_path, name, monkeypatch):
    monkeypatch.setattr(sentencepiece_file, "MOST", 10_000)
    monkeypatch.setattr(sentencepiece_file, "FIELDS", 11_000)
    place, begun = folder(tmp_path, BOMBS[name]), time.process_time()
    with pytest.raises(BadInput) as fault:
        Tokenizer(place)
    assert "\n" not in str(fault.value) and str(place) in str(fault.value)
    assert time.process_time() - begun < 10


def test_a_table_of_characters_is_held_to_the_same_in_a_tokenizer_json(tmp_path):
    rules = Tokenizer(folder(tmp_path, (HERE / "unigram.model").read_bytes())).rules
    whole = json.loads(rules.to_str())
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    assert (
        Tokenizer(tmp_path).encode("ﬁ", special=False)
        == rules.encode("fi", add_special_tokens=False).ids
    )
    table = whole["normalizer"]["normalizers"][0]
    data = dict(_fields(dict(_fields((HERE / "bomb.model").read_bytes()))[3]))[2]
    table["precompiled_charsmap"] = base64.b64encode(data).decode()
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    with pytest.raises(BadInput, match="times as long"):
        Tokenizer(tmp_path)


def test_damage_is_a_line_or_another_model(tmp_path, full):
    draw = random.Random(8)
    for turn in range(3000 if full else 80):
        name = draw.choice(("llama", "gemma", "unigram", "unknown"))
        data = bytearray((HERE / f"{name}.model").read_bytes())
        if turn % 3:
            for _ in range(draw.choice((1, 1, 5, 40))):
                data[draw.randrange(len(data))] = draw.randrange(256)
        else:
            del data[draw.randrange(len(data)) :]
        try:
            tokenizer = Tokenizer(folder(tmp_path, bytes(data)))
            assert tokenizer.decode(tokenizer.encode("Hello  ﬁne\tworld ①")) is not None
        except BadInput as fault:
            assert "\n" not in str(fault)
