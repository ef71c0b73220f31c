"""Tables that people bring: measured times, requests as they arrived, plans of pipelines."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

from engine.core.paths import dataset
from tests.malformed.any_file import Case, as_json, plain
from tests.malformed.damage import of_bytes, of_value

CELLS = (
    "", "0", "-1", "nan", "inf", "1e308", "1e400", "9" * 400, "1_000", "\u0661", "x", '"', "true",
    "2024-02-30", "9223372036854775808", "0x10", "<b>x</b>", "\x1b[2J", "\0",
)  # fmt: skip
PLANS = (
    "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1", "0F0 3F0 3B0 0B0 0STEP 3STEP\n1F0 2F0 2I0 1I0 1W0 2W0",
    "0F0 0SEND_F0 0RECV_B0 0B0\n1RECV_F0 1F0 1B0 1SEND_B0",
)  # fmt: skip
NUMBERS = ("0", "1", "7", "9999", "70000", "999999999", "9" * 30, "9" * 5000, "-1", "\u0663")


def cell(text: str, draw: random.Random) -> str:
    """A copy with a cell or three of other words, taken away or twice."""
    rows = [line.split(",") for line in text.split("\n")]
    for _ in range(draw.randint(1, 3)):
        row = draw.choice(rows)
        place = draw.randrange(len(row))
        how = draw.randrange(8)
        if how == 0 and len(row) > 1:
            del row[place]
        elif how == 1:
            row.insert(place, row[place])
        else:
            row[place] = draw.choice(CELLS)
    return "\n".join(map(",".join, rows))


def measured(count: int, folder: Path, draw: random.Random) -> Iterator[Case]:
    place = dataset("measured/h200-sxm")
    sound = []
    for name in ("products.csv", "attention_lean.csv", "experts.csv"):
        lines = [line for line in (place / name).read_text().splitlines() if line[0] != "#"]
        sound.append("\n".join([lines[0], *lines[1 :: len(lines) // 20]]))
    yield "sound/a.csv", sound[0].encode()
    yield from plain("a.csv")
    yield from _changed(sound, "a.csv", count, draw)


def requests(count: int, folder: Path, draw: random.Random) -> Iterator[Case]:
    azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(
        f"2023-11-16 18:00:{n:02}.5,{40 + n},{1 + n}" for n in range(12)
    )
    said = [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "yes"}]
    values = [
        {"timestamp": 300, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]},
        {"id": "c", "conversations": said},
        {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x"}]},
    ]
    yield "sound/a.csv", azure.encode()
    yield from plain("a.csv")
    yield from _changed([azure], "a.csv", count // 2, draw)
    for place in range(count // 2):
        changed = of_value(values[place % 3], draw)
        yield f"value {place}/a.jsonl", as_json(values[place % 3]) + b"\n" + as_json(changed)


def plans(count: int, folder: Path, draw: random.Random) -> Iterator[Case]:
    yield "sound/a.txt", PLANS[0].encode()
    yield from plain("a.txt")
    for place, number in enumerate(NUMBERS):
        yield f"stage {place}/a.txt", f"{number}F0 {number}B0".encode()
        yield f"microbatch {place}/a.txt", f"0F{number} 0B{number}".encode()
        yield f"both {place}/a.csv", f"{number}F{number},0B0\n1F0,".encode()
    for place in range(count):
        words = draw.choice(PLANS)
        form = draw.randrange(4)
        if form == 0:
            yield f"bytes {place}/a.txt", of_bytes(words.encode(), draw)
        elif form == 1:
            changed = of_value({"plan": words.split("\n")}, draw)
            yield f"value {place}/a.json", json.dumps(changed).encode()
        else:  # a word taken away, twice, elsewhere or of another number
            rows = [row.split(" ") for row in words.split("\n")]
            row = draw.choice(rows)
            word = row.pop(draw.randrange(len(row)))
            again = [word, word.replace("0", draw.choice(NUMBERS))]
            for one in draw.sample(again, draw.randrange(3)):
                draw.choice(rows).insert(0, one)
            apart = "," if form == 2 else " "
            yield f"words {place}/a.txt", "\n".join(map(apart.join, rows)).encode()


def _changed(sound: list[str], name: str, count: int, draw: random.Random) -> Iterator[Case]:
    for place in range(count):
        one = draw.choice(sound)
        if place % 4 == 0:
            yield f"bytes {place}/{name}", of_bytes(one.encode(), draw)
        else:
            yield f"cells {place}/{name}", cell(one, draw).encode()
