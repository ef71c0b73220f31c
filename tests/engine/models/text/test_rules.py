"""Rules of tokenizers from outside: what would cost too much is refused, or bounded when asked."""

import base64
import gc
import json

import pytest

from engine.core.errors import BadInput
from engine.core.limits import changed
from engine.core.paths import dataset
from engine.models.text.encoder import MOST, Encoder
from engine.models.text.rules import ADDED, familiar, read_rules
from engine.models.text.tokenizer import Tokenizer

BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
A = {"type": "Sequence", "pretokenizers": [BYTES]}
WHOLE = {"Sequence": {"id": "A", "type_id": 0}}
FIRST = {"SpecialToken": {"id": "S", "type_id": 0}}


def split(pattern):
    told = {"Regex": pattern}
    return {"type": "Split", "pattern": told, "behavior": "Isolated", "invert": False}


def around(pieces, ids=(0,)):
    told = {"S": {"id": "S", "ids": list(ids), "tokens": ["a"] * len(ids)}}
    kind = {"type": "TemplateProcessing", "pair": [WHOLE], "special_tokens": told}
    return {"post_processor": kind | {"single": pieces}}


def added(*contents, **how):
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False) | how
    told = [{"id": 9 + at, "content": text, **plain} for at, text in enumerate(contents)]
    return {"added_tokens": told}


def replace(content, **pattern):
    return {"type": "Replace", "pattern": pattern, "content": content}


def trie(units, texts=b""):
    return len(units).to_bytes(4, "little") + units + texts


# units of a trie: the first leads to the last, which is of the second byte of the texts
PAGE = (255 << 10 | 1 << 8).to_bytes(4, "little") + bytes(4) * 254 + b"\1\0\0\x80"


def unigram(*pieces):
    held = [["<unk>", 0.0], *([piece, -1.0] for piece in pieces)]
    return {"model": {"type": "Unigram", "unk_id": 0, "vocab": held}}


DEAR = {
    "a group recalled": {"pre_tokenizer": split(r"(a+)\1b")},
    "a group called": {"normalizer": replace("", Regex=r"(?<n>a\g<n>?b?)c")},
    "two repetitions in a decoder": {"decoder": replace("", Regex="[^b]{0,900}[^b]{0,900}b")},
    "letters as bytes again and again": {"pre_tokenizer": {**A, "pretokenizers": [BYTES] * 5}},
    "much put before": {"normalizer": {"type": "Prepend", "prepend": "a" * 1000}},
    "each letter made many": {"normalizer": replace("b" * 63, Regex=".")},
    "nothing made something": {"normalizer": replace("b" * 63, String="")},
    "a decoder's rules that lengthen what the others did": {
        "decoder": {"type": "Sequence", "decoders": [replace("aa", String="a")] * 5},
    },
    "pieces of no length": {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
    "a token around it that there is not": around([{"SpecialToken": {"id": "T", "type_id": 0}}]),
    "rules without end": {
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 99},
    },
    "the text many times": around([WHOLE] * 50),
    "much around the text": around([FIRST] * 500 + [WHOLE], [0] * 500),
    "a long scored piece": unigram("a" * 1000),
    "a long token": {"model": {"type": "BPE", "vocab": {"a" * 5000: 0}, "merges": []}},
    "a token that is too long to be freed": unigram("a" * 40_000 + '"'),
    "a number that no model has": {"model": {"type": "BPE", "vocab": {"a": 1 << 31}, "merges": []}},
    "such a number at its ends": {
        "post_processor": {"type": "BertProcessing", "sep": ["a", 1 << 31], "cls": ["b", 0]},
    },
    "such a number around the text": around([FIRST, WHOLE], [1 << 31]),
    "a long affix": {"model": {"type": "WordPiece", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]",
                               "continuing_subword_prefix": "#" * 5000,
                               "max_input_chars_per_word": 100}},
    "much added": added(*(f"{at:01000d}" for at in range(ADDED // 1000 + 1))),
    "a long one added": added("a" * 5000),
    "nothing replaced": {"normalizer": replace("b", String="")},
    "what matches between letters replaced": {"normalizer": replace("b", Regex="x*")},
    "an end stripped of a text that is shorter": {
        "decoder": {"type": "Strip", "content": "a", "start": 0, "stop": 2},
    },
    "a second text beside one": around([WHOLE, {"Sequence": {"id": "B", "type_id": 0}}]),
    "two tokens of one number": {
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []},
    },
    "spaces searched from the begin": added(" ", lstrip=True),
}  # fmt: skip


def written(folder, changes):
    made = {"version": "1.0", "added_tokens": [], "truncation": None, "padding": None}
    made |= dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor", "decoder"))
    made["model"] = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(made | changes))
    return path


@pytest.mark.parametrize("what", DEAR)
def test_rules_that_cost_too_much_are_refused_in_a_line(tmp_path, what):
    path = written(tmp_path, DEAR[what])
    with pytest.raises(BadInput, match="refused$") as told:
        read_rules(path)
    assert str(told.value).startswith(str(path)) and "\n" not in str(told.value)


@pytest.mark.parametrize("number", [1, 7, 1 << 31])
def test_an_added_token_of_another_number_than_the_library_gives_it_is_refused(tmp_path, number):
    """It would be read and written as another token."""
    right, wrong = (added('["<c>\\"') for _ in range(2))
    right["added_tokens"][0]["id"] = 2
    wrong["added_tokens"][0]["id"] = number
    assert read_rules(written(tmp_path, right)).token_to_id('["<c>\\"') == 2
    with pytest.raises(BadInput, match=f"has number {number}, where the vocabulary leads to 2"):
        read_rules(written(tmp_path, wrong))


@pytest.mark.parametrize("merge", ["a b", ["a", "b"], "a #b", ["a", "#"]])
def test_merges_without_the_mark_of_pieces_that_go_on_are_refused(tmp_path, merge):
    """The library cuts as much off a second piece as the mark is long."""
    model = {"type": "BPE", "vocab": {"a": 0, "##b": 1, "ab": 2}, "merges": [["a", "##b"]]}
    told = {"model": model | {"continuing_subword_prefix": "##"}}
    assert read_rules(written(tmp_path, told)).encode("ab").ids == [2]
    model["merges"].append(merge)
    with pytest.raises(BadInput, match="continuing_subword_prefix '##'; restore it"):
        read_rules(written(tmp_path, {"model": model | {"continuing_subword_prefix": "##"}}))


def test_a_long_table_of_letters_is_no_long_text(tmp_path):
    letters = base64.b64encode(trie(PAGE * 44, b"ab\0")).decode()
    table = {"type": "Precompiled", "precompiled_charsmap": letters}
    assert len(letters) > 60_000
    read_rules(written(tmp_path, {"normalizer": table}))


@pytest.mark.parametrize(
    "table",
    [None, 3, "", "AAAA", "!!!", b"ab", trie(b""), trie(b"abc"), trie(bytes(4), b"\xff"),
     b"\xff\xff\xff\xffabc", trie(b"\xff\xff\xff\x7f" * 256, b"a\0"),
     trie(PAGE[:-4] + b"\0\1\0\0", b"a\0"), trie(PAGE, b"a"), trie(PAGE, "é".encode()),
     trie(b"\0\xfc\xff\xff" + PAGE[4:], b"a\0")],
)  # fmt: skip
def test_a_table_of_letters_that_is_none_is_refused_before_the_library_sees_it(
    tmp_path, table, capfd
):
    """It would print a page on stderr."""
    told = base64.b64encode(table).decode() if isinstance(table, bytes) else table
    rule = {"type": "Precompiled", "precompiled_charsmap": told}
    with pytest.raises(BadInput, match="no table"):
        read_rules(written(tmp_path, {"normalizer": {"type": "Sequence", "normalizers": [rule]}}))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("pattern", "known"),
    [
        (r"\p{N}{1,3}", True),
        (r"[\s\S]|</a>", True),
        (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", True),
        (r"a\*\.\+|[\s\S]", True),
        (r"a\\*a*", False),
        ("a*a*b", False),
    ],
)
def test_patterns_of_public_tokenizers_are_familiar(tmp_path, pattern, known):
    assert familiar(read_rules(written(tmp_path, {"pre_tokenizer": split(pattern)}))) == known


def test_a_text_made_for_an_unfamiliar_pattern_ends_at_the_limit(tmp_path):
    path = written(tmp_path, {"pre_tokenizer": split("a*a*a?c|.")})
    with changed(tokenizer_seconds=0.05):
        encoder = Encoder(Tokenizer(path).rules)
        try:
            assert encoder.encode("ab") == [0, 1]
            with pytest.raises(BadInput, match="tokenizer_seconds"):
                encoder.encode(("a" * 2000 + "b") * 100)
            assert encoder.encode("ba") == [1, 0], "and goes on"
        finally:
            encoder.close()


def test_whoever_asks_is_held_to_the_limit_and_the_rest_get_the_library_s_own(tmp_path):
    path = written(tmp_path, {"pre_tokenizer": split("a*a*a?c|.")})
    tokenizer = Tokenizer(path)
    assert tokenizer.encode("ab") == tokenizer.rules.encode("ab").ids == [0, 1]
    assert tokenizer.encode_all(["ab", "b"]) == [[0, 1], [1]]
    with changed(tokenizer_seconds=0.05), pytest.raises(BadInput, match="tokenizer_seconds"):
        tokenizer.encode(("a" * 2000 + "b") * 100)
    with pytest.raises(BadInput, match="at most"):
        tokenizer.encode("a" * (MOST + 1))
    ends = tokenizer._encoder._children
    tokenizer.close()
    with pytest.raises(BadInput, match="closed"):
        ends.ask(text="a", special=False)


def test_nothing_is_left_of_a_tokenizer_that_is_let_go(tmp_path):
    tokenizer = Tokenizer(written(tmp_path, {"pre_tokenizer": split("a*a*a?c|.")}))
    tokenizer.encode("ab")
    children = tokenizer._encoder._children
    del tokenizer
    gc.collect()
    assert children._closed


def test_all_shipped_tokenizers_are_familiar():
    for file in sorted(dataset("models").rglob("tokenizer.json")):
        assert familiar(read_rules(file)), file


def test_merges_left_out_by_chance_are_all_made(tmp_path):
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
    path = written(tmp_path, {"model": model | {"dropout": 1.0}})
    assert Tokenizer(path).encode("abab") == [2, 2]
