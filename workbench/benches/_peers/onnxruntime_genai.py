"""ONNX Runtime GenAI: the checkpoint through its own builder, then its generation loop.

A batch is static and padded on the left, run until the longest answer is done.
"""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.hardware.probes import threads
from workbench.benches._decode_work import Answered, Ask

PACKAGE = "onnxruntime_genai"
INSTALL = "onnxruntime-genai onnx-ir"
FORMATS = {"float32": ["fp32"], "int4": ["int4", "--extra_options", "int4_block_size=32"]}


@contextmanager
def open(checkpoint: Path, work: Path, form: str) -> Iterator[Callable[[list[Ask]], Answered]]:
    """Convert the checkpoint and load it. Raises BadInput where the builder fails."""
    out = work / "onnx"
    build = [sys.executable, "-m", "onnxruntime_genai.models.builder"]
    build += ["-i", str(checkpoint), "-o", str(out), "-e", "cpu", "-p", *FORMATS[form]]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BadInput(f"onnxruntime-genai: its model builder failed: {last}")
    config = out / "genai_config.json"
    settings = json.loads(config.read_text())
    settings["model"]["decoder"]["session_options"]["intra_op_num_threads"] = threads()
    config.write_text(json.dumps(settings))
    genai = importlib.import_module(PACKAGE)
    model = genai.Model(str(out))
    yield lambda wanted: _answer(genai, model, wanted)


def _answer(genai: Any, model: Any, wanted: list[Ask]) -> Answered:
    longest, most = max(len(a.prompt) for a in wanted), max(a.tokens for a in wanted)
    ids = np.full((len(wanted), longest), 0, np.int32)
    for row, ask in zip(ids, wanted, strict=True):
        row[longest - len(ask.prompt) :] = ask.prompt
    params = genai.GeneratorParams(model)
    params.set_search_options(
        max_length=longest + most,
        min_length=longest + most,
        batch_size=len(wanted),
        do_sample=False,
    )
    start = perf_counter()
    generator = genai.Generator(model, params)
    generator.append_tokens(ids)
    first, made = 0.0, 0
    while made < most and not generator.is_done():
        generator.generate_next_token()
        made += 1
        first = first or perf_counter()
    stop = perf_counter()
    rows = [generator.get_sequence(row).tolist()[longest:] for row in range(len(wanted))]
    tokens = [row[: ask.tokens] for row, ask in zip(rows, wanted, strict=True)]
    return Answered(tokens, stop - start, stop - first)
