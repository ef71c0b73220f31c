"""Log-probabilities of tokens that are parts of characters."""

from workbench.api.logprobs import Offsets, of_chat, of_text

SIGN = "“".encode()
TOKENS = [
    ("a", -1.0, (("a", -1.0),)),
    (SIGN[:1], -2.0, ((SIGN[:1], -2.0), (b"\xe3", -3.0))),
    (SIGN[1:], -1.0, ()),
    ("b", -1.0, ()),
    (SIGN[:1], -1.0, ()),  # never made whole: the text has a replacement character
    ("c", -1.0, ()),
]


def test_parts_of_characters_keep_their_bytes_apart_and_begin_where_the_character_does():
    told = of_text(TOKENS, (), Offsets())
    assert told["tokens"] == ["a", "bytes:\\xe2", "bytes:\\x80\\x9c", "b", "bytes:\\xe2", "c"]
    assert told["text_offset"] == [0, 1, 1, 2, 3, 4]
    assert list(told["top_logprobs"])[1] == {"bytes:\\xe2": -2.0, "bytes:\\xe3": -3.0}
    raw = bytes(byte for entry in of_chat(TOKENS)["content"] for byte in entry["bytes"])
    assert raw == "a“b".encode() + SIGN[:1] + b"c"
