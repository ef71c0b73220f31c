"""The byte-pair tokenizer gives every text back and compresses what it learnt from."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from engine.core.paths import dataset
from engine.training.data.tokenizer import BOS, EOS, save_tokenizer, train_tokenizer

CODE = "def parse_args(self, args):\n    return self.parser.parse_args(args)\n" * 20
TINY = train_tokenizer([CODE], 400)
SHIPPED = Tokenizer.from_file(str(dataset("models/stdlib-draft-1m/tokenizer.json")))


@pytest.mark.parametrize("tokenizer", [TINY, SHIPPED], ids=["tiny", "shipped"])
@settings(max_examples=100, deadline=None)
@given(text=st.text())
def test_any_text_comes_back_unchanged(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_code_takes_fewer_tokens_than_bytes() -> None:
    assert len(TINY.encode(CODE).ids) < len(CODE) / 3


def test_the_marks_are_the_first_entries() -> None:
    assert (TINY.token_to_id(BOS), TINY.token_to_id(EOS)) == (0, 1)


def test_transformers_reads_the_saved_tokenizer(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    save_tokenizer(TINY, tmp_path, context=64)
    peer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert peer.encode(CODE) == TINY.encode(CODE).ids
    assert (peer.bos_token_id, peer.eos_token_id) == (0, 1)
    assert peer.decode(peer.encode("a , b .\n")) == "a , b .\n"
