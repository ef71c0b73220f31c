"""Sentencepiece vocabularies with scores: their rules join pieces as the definition says."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import BadInput
from engine.models.gguf.pieces import BLANK, Pieces
from engine.models.text.tokenizer import Tokenizer
from tests.engine.models.gguf.model_file import model

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
WORDS = [BLANK, "a", "b", "c", "ab", "bc", "abc", f"{BLANK}a", f"{BLANK}ab", "ca", "aa", "\u00e9"]
TEXTS = ["<unk>", "<s>", "</s>", *BYTES, *WORDS]
KINDS = [2, 3, 3, *[6] * 256, *[1] * len(WORDS)]
SCORES = [0.0] * 259 + [-(7.0 * at % 13) - at / 100 for at in range(len(WORDS))]


def joined(text: str, prefix: bool) -> list[int]:
    """The definition: of all neighbours that make a piece, join the two whose piece scores best."""
    number = {piece: at for at, piece in enumerate(TEXTS)}
    parts = list((BLANK if prefix else "") + text.replace(" ", BLANK))
    while True:
        both = [left + right for left, right in zip(parts, parts[1:], strict=False)]
        known = [(-SCORES[number[piece]], at) for at, piece in enumerate(both) if piece in number]
        if not known:
            break
        _, at = min(known)
        parts[at : at + 2] = [both[at]]
    found = []
    for part in parts:
        spelt = [number[part]] if part in number else [3 + byte for byte in part.encode()]
        found += spelt
    return found


@given(st.text("abc \u00e9\u4e16", min_size=1, max_size=12), st.booleans())
def test_texts_are_joined_by_the_highest_score_first(text: str, prefix: bool) -> None:
    rules = RULES[prefix]
    found = rules.encode(text).ids
    assert found == joined(text, prefix)
    assert rules.decode(found) == text


RULES = {prefix: Pieces(TEXTS, SCORES, KINDS, prefix).rules() for prefix in (False, True)}


def said(**more: Any) -> dict[str, Any]:
    held = {"model": "llama", "tokens": TEXTS, "scores": SCORES, "token_type": KINDS}
    held |= {"bos_token_id": 1, "eos_token_id": 2} | more
    return {f"tokenizer.ggml.{name}": value for name, value in held.items()}


def test_a_file_s_pieces_are_its_tokenizer(tmp_path: Path) -> None:
    tokenizer = Tokenizer(model(tmp_path / "m.gguf", **said()))
    assert tokenizer.encode("ab c") == [1, *joined("ab c", True)]
    assert tokenizer.decode(tokenizer.encode("ab \u4e16")) == "ab \u4e16"
    assert (tokenizer.bos, tokenizer.eos) == ((1,), (2,))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"scores": SCORES[1:]}, "scores does not fit its 271 tokens"),
        ({"scores": [float("nan")] * len(SCORES)}, "have no scores"),
        ({"token_type": KINDS[1:]}, "token_type does not fit"),
    ],
)
def test_scores_that_are_none_are_one_line(
    tmp_path: Path, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput) as caught:
        Tokenizer(model(tmp_path / "m.gguf", **said(**more)))
    assert words in str(caught.value) and "\n" not in str(caught.value)
