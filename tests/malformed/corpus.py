"""The corpus: for each kind of file, named cases and as many damaged ones as asked for."""

import gzip
import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers

from engine.core.paths import dataset
from engine.core.toml import load as load_toml
from tests.malformed.any_file import BIG, DEEP, Case, as_json, json_cases, plain
from tests.malformed.damage import NASTY, nested, of_bytes, of_value, too_large
from tests.malformed.run_files import runs
from tests.malformed.tables import measured, plans, requests


def traces(count: int, folder: Path, draw: random.Random) -> Iterator[Case]:
    spans = [
        {"ph": "X", "name": "aten::mm" if n % 3 == 0 else f"op{n}", "cat": "kernel" if n % 3 else
         "cpu_op", "pid": 1, "tid": n % 2, "ts": 10 * n, "dur": 4,
         "args": {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"],
                  "External id": n, "correlation": n}}
        for n in range(12)
    ]  # fmt: skip
    more = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 0, "args": {"name": "stream"}},
        {"ph": "C", "name": "memory", "pid": 1, "tid": 0, "ts": 5, "args": {"bytes": 7}},
        {"ph": "B", "name": "outer", "pid": 1, "tid": 5, "ts": 1},
        {"ph": "i", "name": "step", "pid": 1, "tid": 0, "ts": 9},
        {"ph": "E", "name": "outer", "pid": 1, "tid": 5, "ts": 9},
        {"ph": "s", "name": "flow", "id": 1, "pid": 1, "tid": 0, "ts": 9},
    ]
    value = {
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
        "displayTimeUnit": "ms",
        "traceEvents": [*spans, *more],
    }
    sound = json.dumps(value).encode()
    yield "sound/a.json", sound
    yield "sound and packed/a.json.gz", gzip.compress(sound, mtime=0)
    yield from plain("a.json")
    yield from plain("a.json.gz")
    bomb = gzip.compress(b" " * (200 << 20), mtime=0, compresslevel=1)
    yield "packed blanks/a.json.gz", bomb
    yield "a list/a.json", json.dumps(spans).encode()
    yield "one span far too long/a.json", b'[{"ph":"X","name":"' + b"x" * (3 << 20) + b'"}]'
    yield "deep arguments/a.json", b'[{"ph":"X","args":' + nested(DEEP).encode() + b"}]"
    yield "deep entries/a.json", nested(DEEP).encode()
    for field in ("ts", "dur", "pid", "tid", "args", "name", "ph", "cat"):
        for number, nasty in enumerate(NASTY):
            entries = [{**spans[0], field: nasty}, *spans[1:3]]
            yield f"{field} nasty {number}/a.json", as_json({"traceEvents": entries})
    nasties = (*NASTY, [[2, 3], {"0": 3}], [[1e300, 3], [3, 4]], [[2**62] * 99, [2**62] * 99])
    for field in ("Input Dims", "Input type", "External id"):
        for number, nasty in enumerate(nasties):
            entry = {**spans[0], "args": {**spans[0]["args"], field: nasty}}
            yield f"{field} nasty {number}/a.json", as_json({"traceEvents": [entry, *spans[1:3]]})
    for place, made in enumerate(too_large(value)):
        yield f"too large {place}/a.json", as_json(made)
    for place in range(count):
        if place % 3 == 0:
            yield f"bytes {place}/a.json", of_bytes(sound, draw)
        elif place % 3 == 1:
            yield f"bytes {place}/a.json.gz", of_bytes(gzip.compress(sound, mtime=0), draw)
        else:
            yield f"values {place}/a.json", as_json(of_value(value, draw))


def configs(count: int, folder: Path, draw: random.Random) -> Iterator[Case]:
    known = load_toml(dataset("models/configs.toml"))
    sound = [
        {k: v for k, v in facts.items() if k not in ("source", "licence")}
        for facts in known.values()
        if isinstance(facts, dict)
    ]
    yield "sound/config.json", as_json(sound[0])
    yield from json_cases("config.json", sound, count, draw)
    for field in sound[0]:
        for number, nasty in enumerate(NASTY):
            yield f"{field} nasty {number}/config.json", as_json({**sound[0], field: nasty})


def tokenizers(count: int, folder: Path, draw: random.Random) -> Iterator[Case]:
    words = {"a": 0, "b": 1, "ab": 2, "o": 3, "n": 4, "e": 5, "<s>": 6, ",": 7, " ": 8}
    made = Tokenizer(models.BPE(vocab=words, merges=[("a", "b")], unk_token="<s>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens(["<s>"])
    value = json.loads(made.to_str())
    yield "sound/tokenizer.json", as_json(value)
    yield from json_cases("tokenizer.json", [value], count, draw)
    deep = {"type": "Split", "pattern": {"Regex": "(" * 5000}, "behavior": "Isolated"}
    yield (
        "deep pattern/tokenizer.json",
        as_json({**value, "pre_tokenizer": {**deep, "invert": False}}),
    )
    for number, nasty in enumerate(NASTY):
        for field in ("model", "pre_tokenizer", "added_tokens", "decoder"):
            yield f"{field} nasty {number}/tokenizer.json", as_json({**value, field: nasty})
        for field in ("vocab", "merges", "unk_token", "type"):
            changed = {**value, "model": {**value["model"], field: nasty}}
            yield f"model {field} nasty {number}/tokenizer.json", as_json(changed)


def weights(count: int, folder: Path, draw: random.Random) -> Iterator[Case]:
    def entry(dtype="F32", shape=(2, 3), span=(0, 24)):
        return {"dtype": dtype, "shape": list(shape), "data_offsets": list(span)}

    head = {"a": entry(), "b": entry("BF16", (4,), (24, 32)), "__metadata__": {"format": "pt"}}
    name, data = "a.safetensors", bytes(range(32))
    yield f"sound/{name}", _safe(head, data)
    yield from plain(name)
    for what, said in {
        "overlap": {"a": entry(), "b": entry("BF16", (4,), (16, 24))},
        "gap": {"a": entry(), "b": entry("BF16", (2,), (28, 32))},
        "same bytes": {"a": entry(), "b": entry()},
        "wrong dtype": {"a": entry("F33")},
        "object dtype": {"a": entry("OBJECT")},
        "2^63 shape": {"a": entry(shape=(BIG,))},
        "2^63 offset": {"a": entry(span=(0, BIG))},
        "product wraps to 24": {"a": entry(shape=(2**62, 2**62, 16, 6))},
        "empty far": {"a": entry(shape=(0, 2**61), span=(0, 0)), "b": entry("U8", (32,), (0, 32))},
        "many axes": {"a": entry(shape=[1] * 5000 + [6])},
        "negative": {"a": entry(shape=(-2, -3))},
        "backwards": {"a": entry(span=(24, 0))},
        "bool shape": {"a": entry(shape=(True, 6))},
        "shape as text": {"a": {**entry(), "shape": "23"}},
    }.items():
        yield f"{what}/{name}", _safe(said, data)
    twice = b'{"a":%s,"a":%s}' % ((as_json(entry()),) * 2)
    yield f"duplicate keys/{name}", struct.pack("<Q", len(twice)) + twice + data
    for length in (0, 1, 99_999_999, 100_000_001, BIG - 1, BIG, 2**64 - 1):
        yield f"header of {length} bytes/{name}", struct.pack("<Q", length) + as_json(head) + data
    deep = nested(DEEP).encode()
    yield f"deep header/{name}", struct.pack("<Q", len(deep)) + deep + data
    for number, nasty in enumerate(NASTY):
        for field in ("dtype", "shape", "data_offsets"):
            yield f"{field} nasty {number}/{name}", _safe({"a": {**entry(), field: nasty}}, data)
    for place in range(count):
        if place % 2:
            yield f"bytes {place}/{name}", of_bytes(_safe(head, data), draw)
        else:
            yield f"values {place}/{name}", _safe(of_value(head, draw), data)


def _safe(head: object, data: bytes) -> bytes:
    text = as_json(head)
    return struct.pack("<Q", len(text)) + text + data


def notebooks(count: int, folder: Path, draw: random.Random) -> Iterator[Case]:
    state = {"version_major": 2, "version_minor": 0, "state": {"id": {"model_name": "X"}}}
    value = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3"},
            "widgets": {"application/vnd.jupyter.widget-state+json": state},
        },
        "cells": [
            {"cell_type": "markdown", "id": "a1", "metadata": {}, "source": ["# Title"]},
            {"cell_type": "code", "id": "a2", "metadata": {"tags": ["parameters"]},
             "source": "x = 1\n", "execution_count": None, "outputs": [
                 {"output_type": "stream", "name": "stdout", "text": ["one\n"]},
                 {"output_type": "display_data", "metadata": {}, "data": {"text/html": "<b>x</b>"}},
             ]},
        ],
    }  # fmt: skip
    yield "sound/a.ipynb", as_json(value)
    yield from json_cases("a.ipynb", [value], count, draw)
    for number, nasty in enumerate(NASTY):
        for field in value:
            yield f"{field} nasty {number}/a.ipynb", as_json({**value, field: nasty})
        for field in ("cell_type", "source", "outputs", "metadata", "id"):
            cells = [{**value["cells"][1], field: nasty}]
            yield f"cell {field} nasty {number}/a.ipynb", as_json({**value, "cells": cells})


def sheets(count: int, folder: Path, draw: random.Random) -> Iterator[Case]:
    sound = dataset("hardware/h100-sxm.toml").read_bytes()
    yield "sound/a.toml", sound
    yield from plain("a.toml")
    yield "deep/a.toml", b"x = " + nested(DEEP).encode()
    yield "deep tables/a.toml", b"x = " + b"{a=" * 5000 + b"1" + b"}" * 5000
    yield "long key/a.toml", b".".join([b"a"] * 5000) + b" = 1"
    lines = sound.decode().splitlines()
    spelled = (
        "-1",
        "nan",
        "inf",
        '""',
        '"x"',
        "[]",
        "{}",
        "true",
        "1e400",
        "9" * 400,
        "1979-05-27",
    )
    keyed = [n for n, line in enumerate(lines) if "=" in line and not line.startswith("#")]
    for place in range(count):
        if place % 2:
            yield f"bytes {place}/a.toml", of_bytes(sound, draw)
            continue
        made = list(lines)
        at = draw.choice(keyed)
        made[at] = f"{made[at].partition('=')[0]}= {draw.choice(spelled)}"
        yield f"values {place}/a.toml", "\n".join(made).encode()


KINDS = {
    "run": runs,
    "trace": traces,
    "config": configs,
    "tokenizer": tokenizers,
    "weights": weights,
    "notebook": notebooks,
    "sheet": sheets,
    "measured": measured,
    "requests": requests,
    "plan": plans,
}
