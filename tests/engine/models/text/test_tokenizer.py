"""Text to ids and back; streams that never split a character; special tokens from any file."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Rules

from engine.core.errors import BadInput
from engine.models.text.token_bytes import said
from engine.models.text.tokenizer import LONG, Tokenizer

GREETING = "naïve 好的 👩‍👩‍👧 ok"


def byte_level() -> Rules:
    """One token for every byte, and two special ones."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    rules = Rules(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    rules.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rules.decoder = decoders.ByteLevel()
    rules.add_special_tokens(["<s>", "</s>"])
    return rules


def byte_fallback() -> Rules:
    """Whole letters where known, bytes where not, spaces as ▁ (as Llama-2 has it)."""
    vocab = {"<unk>": 0} | {f"<0x{byte:02X}>": byte + 1 for byte in range(256)}
    vocab |= {letter: 257 + i for i, letter in enumerate("▁abcdefghijklmnopqrstuvwxyz好")}
    rules = Rules(models.BPE(vocab, [], byte_fallback=True, unk_token="<unk>"))
    rules.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    rules.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return rules


@pytest.fixture(params=[byte_level, byte_fallback], scope="module")
def tokenizer(request, tmp_path_factory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    request.param().save(str(folder / "tokenizer.json"))
    return Tokenizer(folder)


def streamed(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    stream = tokenizer.stream()
    return [*(stream.push(token) for token in ids), stream.flush()]


def test_text_survives_encoding_and_decoding(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode(GREETING)) == GREETING


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=30))
def test_streamed_pieces_join_to_the_text_and_no_character_is_split(tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    pieces = streamed(tokenizer, ids)
    assert "".join(pieces) == tokenizer.decode(ids)
    assert all("\ufffd" not in piece for piece in pieces) or "\ufffd" in text


@settings(max_examples=150, deadline=None)
@given(ids=st.lists(st.integers(0, 255), max_size=30))
def test_streamed_rubbish_joins_to_what_decoding_it_whole_gives(ids: list[int]) -> None:
    path = Path("/nonexistent")
    tokenizer = Tokenizer.__new__(Tokenizer)
    tokenizer.folder, tokenizer.rules = path, byte_level()
    assert "".join(streamed(tokenizer, ids)) == tokenizer.decode(ids)


def test_a_character_comes_out_with_its_last_byte(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("é👍")
    pieces = streamed(tokenizer, ids)
    assert [piece for piece in pieces if piece.strip()] == ["é", "👍"]
    assert pieces[-1] == ""


def test_an_unfinished_character_comes_out_at_the_end(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("ab👍")[:-1]
    pieces = streamed(tokenizer, ids)
    assert "".join(pieces[:-1]).strip() == "ab"
    assert "\ufffd" in pieces[-1]


def test_a_long_stream_decodes_a_short_window_only(tokenizer: Tokenizer) -> None:
    stream = tokenizer.stream()
    for token in tokenizer.encode("abc " * 200):
        stream.push(token)
        assert len(stream.ids) < 12


def folder_with(tmp_path: Path, **files: dict) -> Path:
    byte_level().save(str(tmp_path / "tokenizer.json"))
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def test_special_tokens_come_from_whichever_file_names_them(tmp_path: Path) -> None:
    folder = folder_with(
        tmp_path,
        generation_config={"eos_token_id": [7, 8]},
        config={"eos_token_id": 8, "bos_token_id": 3},
        tokenizer_config={"eos_token": {"content": "</s>"}, "bos_token": "<s>"},
    )
    tokenizer = Tokenizer(folder)
    assert tokenizer.bos == (3,)
    assert tokenizer.eos == (7, 8, 257)
    assert tokenizer.special_texts == {"bos_token": "<s>", "eos_token": "</s>"}


def test_half_a_character_in_a_special_token_is_none(tmp_path: Path) -> None:
    held = {"eos_token": "\ud800", "bos_token": {"content": "\udfff<s>"}, "unk_token": "?"}
    tokenizer = Tokenizer(folder_with(tmp_path, tokenizer_config=held))
    assert (tokenizer.bos, tokenizer.eos) == ((), ())
    assert tokenizer.special_texts == {"unk_token": "?"}


@pytest.mark.parametrize("special", [False, True])
def test_long_lists_are_decoded_as_short_ones_are(tokenizer: Tokenizer, special: bool) -> None:
    """And beside other Python threads: by a call that lets go of the lock."""
    ids = tokenizer.encode(GREETING) * LONG
    whole = tokenizer.rules.decode(ids, skip_special_tokens=not special)
    assert tokenizer.decode(ids, special) == whole


def test_special_tokens_are_hidden_unless_asked_for(tmp_path: Path) -> None:
    tokenizer = Tokenizer(folder_with(tmp_path))
    ids = [*tokenizer.encode("hi"), 257]
    assert tokenizer.decode(ids) == "hi"
    assert tokenizer.decode(ids, special=True) == "hi</s>"
    assert tokenizer.vocab == 258


def test_the_chat_template_is_found_in_all_its_places(tmp_path: Path) -> None:
    assert Tokenizer(folder_with(tmp_path)).template is None
    named = [{"name": "tool", "template": "t"}, {"name": "default", "template": "d"}]
    folder_with(tmp_path, tokenizer_config={"chat_template": named})
    assert Tokenizer(tmp_path).template == "d"
    folder_with(tmp_path, tokenizer_config={"chat_template": "one"})
    assert Tokenizer(tmp_path).template == "one"
    (tmp_path / "chat_template.jinja").write_text("own")
    assert Tokenizer(tmp_path).template == "own"


@pytest.mark.parametrize("content", ["", "{}", '{"model": 3}', "\x00\xff"])
def test_a_broken_tokenizer_is_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(BadInput, match=r"tokenizer\.json: not a tokenizer"):
        Tokenizer(tmp_path)


def test_a_folder_without_a_tokenizer_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        Tokenizer(tmp_path)


@pytest.mark.parametrize("special", [True, False])
def test_a_long_text_is_encoded_as_short_ones_are(tmp_path, special):
    """Long ones go another way, on which Python's other threads do not wait."""
    path = tmp_path / "tokenizer.json"
    byte_level().save(str(path))
    text = (GREETING + " words") * (LONG // len(GREETING) + 1)
    found = Tokenizer(path).encode(text, special=special)
    assert found == Rules.from_file(str(path)).encode(text, add_special_tokens=special).ids


@pytest.mark.parametrize("pattern", [" ", "a*a*"], ids=["here", "in a process"])
def test_half_a_character_is_refused_in_a_line(tmp_path: Path, pattern: str) -> None:
    rules = byte_level()
    rules.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    rules.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer(tmp_path)
    for text in ("a\udcff", "a\udcff" * LONG):
        with pytest.raises(BadInput, match="half a character|must be str"):
            tokenizer.encode(text)
    tokenizer.close()


def test_tokens_that_are_parts_of_characters_tell_their_bytes(tokenizer: Tokenizer) -> None:
    parts = [said(tokenizer, token) for token in tokenizer.encode("a👩")]
    raw = [part.encode() if isinstance(part, str) else part for part in parts]
    assert b"".join(raw).strip() == "a👩".encode()
    assert sum(isinstance(part, bytes) for part in parts) == 4
