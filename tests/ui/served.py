"""The app served in a process of its own, on a free port, for as long as a block lasts."""

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

WAIT = 300.0  # seconds the app may take to start, or to end, on a busy machine
START = ("-c", "import sys; from workbench.cli.main import main; sys.exit(main(sys.argv[1:]))")


@contextmanager
def serving(
    folder: Path,
    words: Sequence[str] = (),
    program: Sequence[str] = START,
    *,
    python: str | Path = sys.executable,
    place: Path | None = None,
) -> Iterator[str]:
    """The address of `workbench WORDS`; what it says goes to `folder`/said.txt.

    `program`: of `python`, in the place of `workbench`; it too takes `--port` and `--no-browser`.
    `place`: the folder it runs in.
    """
    said = folder / "said.txt"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [str(python), *program, *words, "--port", str(port), "--no-browser"]
    with said.open("w") as file:
        process = subprocess.Popen(line, stderr=file, stdout=file, cwd=place)
    address = f"http://127.0.0.1:{port}"
    try:
        _answers(address, process, said)
        yield address
    finally:
        process.terminate()
        ended = process.wait(WAIT)
    assert ended == 0, f"a polite kill is how it is stopped: {ended}, {said.read_text()}"


def _answers(address: str, process: subprocess.Popen[bytes], said: Path) -> None:
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the app ended: {said.read_text()}")
        try:
            urllib.request.urlopen(f"{address}/v1/models", timeout=5).read()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("the app did not answer")
