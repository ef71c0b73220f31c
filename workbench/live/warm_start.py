"""Warm start: plain torch answers on a new machine while the kernels compile beside it.

Compiling the processor's kernels takes seconds, once; whoever opens the app for the first time
should see a model decoding before that. In comes a config, out goes an executor without kernels.
"""

import subprocess
import sys

from engine.core.clock import WallClock
from engine.inference.config import InferenceConfig
from engine.inference.executors.executor import Built
from engine.inference.executors.real import Real
from engine.inference.executors.tensors.real_executor import executor_for
from engine.kernels.experiments.ready import ready
from engine.models.loading.find import find
from engine.models.loading.load import opened
from engine.models.model import Model
from engine.models.text.tokenizer import Tokenizer


def must_compile(config: InferenceConfig) -> bool:
    """Whether this config's first step would wait for a compiler."""
    on = config.executor
    real = isinstance(on, Real) and on.device == "cpu" and config.dtype != "float16"
    if isinstance(on, Real) and on.activations != "auto":
        return False  # plain torch has no integers, and an engine keeps to one way
    return real and find(config.model).folder is not None and not ready(config.dtype, config.dtype)


def compile_beside() -> subprocess.Popen[bytes]:
    """Compile the kernels in a process of its own, whose lock is not this one's."""
    words = [sys.executable, "-m", "workbench.live.warm_up"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def plain_build(config: InferenceConfig) -> Built:
    """The model of a config in plain torch, with its tokenizer. Raises BadInput."""
    found = find(config.model)
    assert found.folder is not None
    _, source = opened(found.folder)
    model = Model(found.config, source, config.dtype, plain=True)
    tokenizer = Tokenizer(found.folder)
    eos = tuple(dict.fromkeys(found.config.eos + tokenizer.eos))
    kind = config.executor.kv_cache_dtype if isinstance(config.executor, Real) else "auto"
    made = executor_for(config, model, found.name, eos, kv_cache_dtype=kind)
    return Built(made, WallClock(), tokenizer)
