"""Tokens to text, one at a time, with characters spread over several tokens."""

import pytest

from engine.core.paths import datasets
from engine.inference.detokenizer import Detokenizer
from engine.models.text.tokenizer import Tokenizer
from tests.engine.inference.small import Words

MODEL = datasets() / "models" / "stdlib-5m"


class Bytes:
    """Every token is one byte; like a byte-level tokenizer at its worst."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, tokens: list[int]) -> str:
        return bytes(tokens).decode(errors="replace")


@pytest.mark.parametrize("text", ["plain", "für", "naïve 🦊 fox", "日本語", "x"])
def test_pieces_joined_are_the_text_and_never_end_inside_a_character(text):
    pieces = Detokenizer(Bytes())
    given = [pieces.push("r0", token) for token in text.encode()]
    assert "".join(given) == text and "\N{REPLACEMENT CHARACTER}" not in "".join(given)


def test_threads_do_not_mix_their_unfinished_characters():
    pieces = Detokenizer(Bytes())
    first, second = "é".encode(), "ü".encode()
    assert pieces.many(["a", "b"], [first[0], second[0]]) == ["", ""]
    assert pieces.many(["a", "b"], [first[1], second[1]]) == ["é", "ü"]


def test_bytes_that_are_no_character_are_given_out_in_the_end():
    pieces = Detokenizer(Bytes())
    given = "".join(pieces.push("r0", 0xFF) for _ in range(20))
    assert given and pieces.push("r0", ord("a")).endswith("a")


def test_without_a_tokenizer_tokens_read_as_numbers():
    pieces = Detokenizer(None)
    assert pieces.many(["a", "b"], [5, 17]) == [" 5", " 17"] and pieces.text([5, 17]) == " 5 17"


def test_each_token_is_decoded_once():
    class Counting(Words):
        calls = 0

        def decode(self, tokens: list[int]) -> str:
            Counting.calls += 1
            return super().decode(tokens)

    pieces = Detokenizer(Counting())
    for _ in range(50):
        pieces.many(["a", "b"], [3, 4])
    assert Counting.calls <= 4


def test_the_shipped_tokenizer_reads_back_what_it_wrote():
    tokenizer = Tokenizer(MODEL)
    text = "def größe(self) -> int:\n    return 1  # 🦊 naïve\n"
    pieces = Detokenizer(tokenizer)
    said = "".join(pieces.push("r0", token) for token in tokenizer.encode(text))
    assert said.strip() == text.strip() or said.strip().endswith(text.strip())
