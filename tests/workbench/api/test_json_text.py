"""Bodies are weighed before they are read; long answers are written in pieces, as the same text."""

import json
import random

import pytest

from engine.core.errors import BadInput
from engine.core.limits import changed, limits
from workbench.api import json_text
from workbench.api.json_text import read_json, write_json
from workbench.api.requests import chat

HALF_A_CHARACTER = rb'{"prompt": "\ud800"}'


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000, HALF_A_CHARACTER])
def test_a_body_that_is_no_object_is_refused(body):
    with pytest.raises(BadInput, match="body"):
        read_json(body)


FLOODS = {
    "names": lambda n: {str(at): 1 for at in range(n)},
    "names that end in a stroke": lambda n: {f"{at}\\": 1 for at in range(2 * n)},
    "texts": lambda n: ["a"] * n,
    "lists": lambda n: [[]] * n,
    "objects": lambda n: [{}] * n,
    "objects of one": lambda n: [{"a": 1}] * n,
    "numbers": lambda n: [1.0] * 8 * n,
    "all": lambda n: [["a", {"b": [1, 2.0, None]}]] * n,
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_of_entries_is_refused_before_it_is_read(kind, monkeypatch):
    # A thousandth of the limit: what is asked is whether each kind is counted.
    with changed(body_entries=limits().body_entries // 1000):
        few, many = (json.dumps({"user": FLOODS[kind](n)}).encode() for n in (10, 132))
        assert read_json(few)
        monkeypatch.setattr(json_text.json, "loads", None)
        with pytest.raises(BadInput, match="over the limit body_entries=131;"):
            read_json(many)


def test_letters_of_a_text_are_no_entries():
    text = 'He said: "no", (or \\"yes\\"), and went. ' * 20_000
    assert read_json(json.dumps({"prompt": text}).encode())["prompt"] == text


def test_arguments_of_an_earlier_call_are_weighed_too():
    given = json.dumps({str(at): 1 for at in range(1200)})
    call = {"type": "function", "function": {"name": "f", "arguments": given}}
    said = [{"role": "assistant", "tool_calls": [call]}]
    assert chat({"model": "toy", "messages": said})
    with changed(body_entries=1000), pytest.raises(BadInput, match="arguments: .*body_entries"):
        chat({"model": "toy", "messages": said})


def drawn(draw, deep=0):
    kind = draw.randrange(7 if deep < 9 else 5)
    if kind < 5:
        return [None, True, draw.random(), draw.randint(-9, 9), 'ab"\u20ac\ud83d\ude00\n'][kind]
    many = draw.choice([0, 1, 3])
    if kind == 5:
        return [drawn(draw, deep + 1) for _ in range(many)]
    return {f"k{at}": drawn(draw, deep + 1) for at in range(many)}


def test_what_is_written_is_what_json_writes():
    draw = random.Random(4)
    for _ in range(300):
        value = {"a": drawn(draw), "b": [drawn(draw) for _ in range(3)]}
        assert write_json(value) == json.dumps(value)
    many = {"data": [{"embedding": [draw.random() for _ in range(3000)]}, {"embedding": []}]}
    assert write_json(many) == json.dumps(many)


def test_nothing_long_is_written_in_one_go(monkeypatch):
    pieces, dumps = [], json.dumps

    def kept(value, **how):
        pieces.append(dumps(value, **how))
        return pieces[-1]

    monkeypatch.setattr(json_text.json, "dumps", kept)
    tops = [{f"t{at}": -0.5 for at in range(64)} for _ in range(2000)]
    told = {"choices": [{"logprobs": {"tokens": ["ab"] * 9000, "top_logprobs": tops}}] * 2}
    whole = write_json(told)
    assert whole == dumps(told) and max(map(len, pieces)) < len(whole) / 200


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"a": 1 "b": 2}', "not JSON: expecting ',' delimiter at character 8"),
        (b'{"a": "\xff"}', "not JSON in UTF-8: byte 7 is none"),
        (b'\xef\xbb\xbf{"a": 1}', "bom"),
        (b'{"a": "\\ud83d"}', "half a surrogate pair"),
        (b'{"a": ' + b"[" * 60_000 + b"]" * 60_000 + b"}", "nested too deep"),
        (b'{"a": ' + b"9" * 5000 + b"}", "4,300 digits"),
        (b'{"a": [' + b"1," * 20_000 + b"01]}", "not JSON"),
    ],
    ids=["comma", "utf-8", "mark", "surrogate", "deep", "digits", "long"],
)
def test_what_cannot_be_read_is_told_why(body, says):
    with pytest.raises(BadInput) as fault:
        read_json(body)
    assert says in str(fault.value)


DAMAGE = ["", ",", "[", "]", "{", "}", '"', "1", " ", "x", ":", "-", "."]


@pytest.mark.parametrize("step", [1, 3, 1 << 14])
def test_what_is_read_in_pieces_is_what_json_reads_damaged_or_not(step, monkeypatch, full):
    monkeypatch.setattr(json_text, "LONG", 0)
    monkeypatch.setattr(json_text, "REST", 0)
    monkeypatch.setattr(json_text, "STEP", step)
    draw = random.Random(step)

    def read(by, text):
        try:
            return repr(by(text))
        except ValueError:
            return "not JSON"

    for _ in range(5000 if full else 300):
        value = {"a": drawn(draw), "b": [7, 2.5, -3e10] * draw.choice([0, 1, 9]), "c": drawn(draw)}
        text = json.dumps(value, indent=draw.choice([None, None, 1]))
        at, how = draw.randrange(len(text)), draw.choice(DAMAGE)
        for one in (text, text[:at] + how + text[at + draw.randrange(2) :], f"{text}{how}"):
            assert read(json_text._read_long, one) == read(json.loads, one), one


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": [list(range(9999))] * 9, "tokens": list(range(99_999))},
        {"prompt": [None, True] * 60_000},
    ],
    ids=["numbers", "neither numbers nor texts"],
)
def test_no_long_list_is_read_in_one_go_nor_one_by_one(body, monkeypatch):
    pieces, loads = [], json.loads
    monkeypatch.setattr(json_text.json, "loads", lambda t: (pieces.append(len(t)), loads(t))[1])
    assert read_json(json.dumps(body).encode()) == body
    assert len(pieces) > 20 and max(pieces) <= json_text.STEP + 2
