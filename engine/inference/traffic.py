"""Writes the traces shipped in datasets/workloads: synthetic, in the public layouts, from a seed.

`python -m engine.inference.traffic FOLDER` writes both files again, byte for byte.
"""

import json
import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from engine.inference.workloads.synthetic import Lengths, arrivals
from engine.inference.workloads.traces.records import BLOCK, HEADER

COMMAND = "python -m engine.inference.traffic"
START = datetime(2026, 1, 1)
COUNT = 400


def azure_like(seed: int = 0, count: int = COUNT, rate: float = 5.0) -> str:
    """Independent requests: Poisson arrivals, log-normal lengths, no contents."""
    random = np.random.default_rng([seed, 4])
    times = arrivals(random, count, rate)
    prompts = Lengths(median=800, spread=0.9, longest=8000).draw(random, count)
    answers = Lengths(median=130, spread=0.8, longest=1000).draw(random, count)
    lines = [
        f"# Synthetic, made by {COMMAND}: seed {seed}, {count} requests, Poisson at {rate:g}/s,",
        "# log-normal lengths: prompts median 800 spread 0.9, answers median 130 spread 0.8.",
        HEADER,
    ]
    for when, prompt, answer in zip(times, prompts, answers, strict=True):
        stamp = (START + timedelta(seconds=float(when))).strftime("%Y-%m-%d %H:%M:%S.%f")
        lines.append(f"{stamp},{prompt},{answer}")
    return "\n".join(lines) + "\n"


def mooncake_like(seed: int = 0, count: int = COUNT, rate: float = 3.0, talkers: int = 250) -> str:
    """Conversations: each request repeats one of `talkers` histories and adds to it.

    A history begins with one system prompt that all share, and starts anew past 32,000 tokens.
    """
    random = np.random.default_rng([seed, 5])
    times = np.floor(1000 * arrivals(random, count, rate)).astype(int)
    grown = Lengths(median=1500, spread=0.9, longest=16_000).draw(random, count)
    answers = Lengths(median=250, spread=0.7, longest=2000).draw(random, count)
    who = random.integers(0, talkers, count)
    lines = [
        f"# Synthetic, made by {COMMAND}: seed {seed}, {count} requests, Poisson at {rate:g}/s,",
        f"# {talkers} conversations over one system prompt; each turn adds a log-normal length,",
        "# median 1500 spread 0.9; answers median 250 spread 0.7.",
    ]
    whole: dict[int, list[int]] = {}  # ids of the full blocks of each history
    length: dict[int, int] = {}
    made = 1  # block 0 is the system prompt
    for when, talker, added, answer in zip(times, who, grown, answers, strict=True):
        if length.get(talker, BLOCK) + added > 32_000 or talker not in whole:
            whole[talker], length[talker] = [0], BLOCK
        length[talker] += int(added)
        full, part = divmod(length[talker], BLOCK)
        fresh = full - len(whole[talker])
        whole[talker] += range(made, made + fresh)
        made += fresh
        ids = whole[talker] + ([made] if part else [])
        made += part > 0
        record = {"timestamp": int(when), "input_length": length[talker]}
        record |= {"output_length": int(answer), "hash_ids": ids}  # type: ignore[dict-item]
        lines.append(json.dumps(record))
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """Both files, with the parameters they ship with."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "azure-like.csv").write_text(azure_like())
    (folder / "mooncake-like.jsonl").write_text(mooncake_like())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
