"""Files that would cost far more than they weigh, a seed for each: what a fuzzer tries of them."""

import gzip
import json
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.core.file import save
from engine.core.paths import dataset
from tests.malformed.run_files import run_log

MANY_WAYS = ("(a+)+$", "(a|a)*$", "(.*)*x", r"(\s*\w+)*$", "((ab?)+c?)*$", "(a{0,})+")


def run(folder: Path, draw: random.Random) -> Path:
    """One row of a run many times over, with a large value; packed in one of several ways."""
    path = save(run_log(), folder / "a.run")
    table = pq.read_table(path)
    column, value = draw.choice(
        [("data", bytes(draw.randint(1 << 20, 2 << 20))),
         ("text", draw.choice("xyz") * draw.randint(1 << 14, 1 << 17)),
         ("shape", np.full(draw.randint(9 * 10**6, 10**7), draw.randint(0, 3))),
         ("time", 0.0)]
    )  # fmt: skip
    made = pa.array([value])
    one = table.slice(table.num_rows - 1)
    made = made.dictionary_encode() if column == "text" else made
    one = one.set_column(one.column_names.index(column), column, made)
    rows = {"data": 80, "text": 9000, "shape": 1, "time": 2_000_000}[column]
    plain = column != "data" or draw.random() < 0.7
    many = one.take(pa.array(np.zeros(rows, np.int64)))
    whole = pa.concat_tables([table, many], promote_options="permissive")
    pq.write_table(
        whole.replace_schema_metadata(table.schema.metadata), path,
        compression=draw.choice(["zstd", "gzip"]),
        use_dictionary=plain, data_page_version=draw.choice(["1.0", "2.0"]),
        row_group_size=draw.choice([None, 10**6]),
    )  # fmt: skip
    return path


def trace(folder: Path, draw: random.Random) -> Path:
    """Unclosed beginnings, threads without number, entries within entries, blanks packed."""
    path, count = folder / "a.json", draw.randint(20_000, 60_000)
    kind = draw.randrange(6)
    if kind == 0:
        rows = [{"ph": "B", "name": f"n{n}", "pid": draw.randrange(count), "tid": n, "ts": n}
                for n in range(count)]  # fmt: skip
        path.write_text(json.dumps(rows))
    elif kind == 1:
        rows = [{"ph": draw.choice("XCiM"), "name": "thread_name", "pid": n, "tid": str(n), "ts": n,
                 "dur": 1, "args": {"name": "same"}} for n in range(count)]  # fmt: skip
        path.write_text(json.dumps(rows))
    elif kind == 2:
        inner = draw.choice(['{"a":[{},', '[{},{"b":', '{"ph":"X","args":{"x":[{},'])
        path.write_text("[" + inner * count)
    elif kind == 3:
        path = folder / "a.json.gz"
        fill = draw.choice([b" ", b'{"ph":"i"},', b'{"ph":"X","ts":1,"dur":1},'])
        size = (160 << 20) // len(fill)
        path.write_bytes(gzip.compress(b"[" + fill * size, compresslevel=1))
    elif kind == 4:
        path = folder / "a.json.gz"
        path.write_bytes(gzip.compress(draw.choice([b"", b" ", b"["])) * count * 2)
    else:
        os.mkfifo(path)
    return path


def weights(folder: Path, draw: random.Random) -> Path:
    """Names twice among very many, headers of lists, a pipe in the file's place."""
    path, count = folder / "a.safetensors", draw.randint(30_000, 120_000)
    kind = draw.randrange(4)
    if kind == 0:
        os.mkfifo(path)
        return path
    entry = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    names = [f"t{n}" for n in range(count)]
    if kind == 1:
        names += names[: draw.randint(1, count)]
    head = "{" + ",".join(f'"{name}":{entry}' for name in names) + "}"
    if kind == 2:
        head = "[" * count
    if kind == 3:
        head = '{"a":' + json.dumps({"dtype": "U8", "shape": [0] * count}) + "}"
    data = head.encode()
    path.write_bytes(struct.pack("<Q", len(data)) + data)
    return path


def config(folder: Path, draw: random.Random) -> Path:
    """Counts that would make tables without end, lists to look through, files without size."""
    path = folder / "config.json"
    raw = json.loads((dataset("models/stdlib-5m") / "config.json").read_text())
    kind = draw.randrange(5)
    if kind == 0:
        raw["num_hidden_layers"] = draw.randint(1 << 15, 1 << 24)
    elif kind == 1:
        raw |= {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
                "num_local_experts": draw.randint(1 << 14, 1 << 24)}  # fmt: skip
        raw["num_hidden_layers"] = draw.randint(100, 1000)
    elif kind == 2:
        raw |= {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
                "num_hidden_layers": 16_000}  # fmt: skip
        raw["mlp_only_layers"] = list(range(-200_000, 0))
    elif kind == 3:
        path.symlink_to(draw.choice(["/dev/zero", "/dev/urandom", "/proc/kmsg", "/etc/passwd"]))
        return path
    else:
        with path.open("wb") as file:
            file.truncate(draw.randint(1 << 30, 1 << 33))
        return path
    path.write_text(json.dumps(raw))
    return path


def tokenizer(folder: Path, draw: random.Random) -> Path:
    """Paddings, replacements that multiply, patterns that try everything, templates too long."""
    path = folder / "tokenizer.json"
    value = json.loads((dataset("models/stdlib-5m") / "tokenizer.json").read_text())
    kind = draw.randrange(6)
    many = {"type": "Replace", "pattern": {"String": draw.choice("abo ")}, "content": "a" * 1000}
    if kind == 0:
        value["padding"] = {"strategy": {"Fixed": 10 ** draw.randint(7, 10)}, "direction": "Right",
                            "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
                            "pad_token": "x"}  # fmt: skip
    elif kind == 1:
        value["normalizer"] = {"type": "Sequence", "normalizers": [many] * draw.randint(2, 5)}
    elif kind == 2:
        value["decoder"] = {"type": "Sequence", "decoders": [many] * draw.randint(2, 5)}
    elif kind == 3:
        regex = draw.choice(
            ["(a+)+$", "(a|a)*$", "(.*)*x", r"(\s*\w+)*$", "((ab?)+c?)*$", "(a{0,})+"]
        )
        value["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": regex},
                                  "behavior": "Isolated", "invert": False}  # fmt: skip
    elif kind == 4:
        with (folder / "chat_template.jinja").open("wb") as file:
            file.truncate(draw.randint(1 << 20, 1 << 33))
    else:
        (folder / "chat_template.jinja").symlink_to(draw.choice(["/etc/passwd", "/dev/zero"]))
    path.write_text(json.dumps(value))
    return path


KINDS: dict[str, Callable[[Path, random.Random], Path]] = {
    "run": run,
    "trace": trace,
    "weights": weights,
    "config": config,
    "tokenizer": tokenizer,
}
