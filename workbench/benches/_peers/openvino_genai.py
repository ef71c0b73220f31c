"""OpenVINO GenAI: the checkpoint through optimum's exporter, then continuous batching.

The exporter pins a transformers of its own, so it may live in an environment of its own: the
`optimum-cli` that is found first on PATH is taken, this environment's package without one.
"""

import importlib
import shutil
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
from workbench.benches._decode_work import PAGES, Answered, Ask

PACKAGE = "openvino_genai"
INSTALL = "openvino-genai, and optimum-intel nncf here or where optimum-cli is on PATH"
EXPORT = "from optimum.commands.optimum_cli import main; main()"
FORMATS = {  # the exporter's weights, and the precision of the products
    "float32": (["fp32"], "f32"),
    "bfloat16": (["fp32"], "bf16"),
    "int8": (["int8"], "f32"),
    "int4": (["int4", "--group-size", "32", "--ratio", "1.0", "--sym", "--all-layers"], "f32"),
}
PAGE = 32  # tokens of a page of its cache on the processor


@contextmanager
def open(checkpoint: Path, work: Path, form: str) -> Iterator[Callable[[list[Ask]], Answered]]:
    """Convert the checkpoint and load it. Raises BadInput where the exporter fails."""
    out = work / "openvino"
    weights, precision = FORMATS[form]
    found = shutil.which("optimum-cli")
    export = [found] if found else [sys.executable, "-c", EXPORT]
    export += ["export", "openvino", "-m", str(checkpoint)]
    export += ["--task", "text-generation-with-past", "--weight-format", *weights, str(out)]
    done = subprocess.run(export, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BadInput(f"openvino-genai: optimum's exporter failed: {last}")
    genai = importlib.import_module(PACKAGE)
    scheduler = genai.SchedulerConfig()
    scheduler.num_kv_blocks = PAGES * 16 // PAGE
    scheduler.max_num_seqs = 64
    scheduler.max_num_batched_tokens = 512
    scheduler.enable_prefix_caching = False
    settings = {
        "INFERENCE_NUM_THREADS": threads(),
        "INFERENCE_PRECISION_HINT": precision,
        "KV_CACHE_PRECISION": "f32",
    }
    pipe = genai.ContinuousBatchingPipeline(str(out), scheduler, "CPU", settings)
    yield lambda wanted: _answer(genai, pipe, wanted)


def _answer(genai: Any, pipe: Any, wanted: list[Ask]) -> Answered:
    tensor = importlib.import_module("openvino").Tensor
    tokens: list[list[int]] = [[] for _ in wanted]
    first = 0.0
    start = perf_counter()
    handles = []
    for number, ask in enumerate(wanted):
        wish = genai.GenerationConfig(
            max_new_tokens=ask.tokens, ignore_eos=True, do_sample=False, num_return_sequences=1
        )
        ids = tensor(np.array([ask.prompt], np.int64))
        handles.append(pipe.add_request(number, ids, wish))
    while pipe.has_non_finished_requests():
        pipe.step()
        for made, handle in zip(tokens, handles, strict=True):
            if handle.can_read():
                made += [token for each in handle.read().values() for token in each.generated_ids]
        if not first and tokens[0]:
            first = perf_counter()
    stop = perf_counter()
    return Answered(tokens, stop - start, stop - first)
