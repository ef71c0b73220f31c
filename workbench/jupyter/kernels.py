"""How a kernel's pages and the Jupyter server that started it find each other: two small files.

The server's extension says below which path it serves; a kernel says at which port of loopback its
pages are and by which secret. Both lie in Jupyter's runtime folder, readable by their owner alone.
"""

import contextlib
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_runtime_dir

from workbench.jupyter.reached import Reached

NAME = re.compile(r"[A-Za-z0-9_-]{16,64}")
LONGEST = 4096  # bytes of such a file


def server_file(pid: int) -> Path:
    """Where the server of that process id says what it serves."""
    return Path(jupyter_runtime_dir()) / f"workbench-server-{pid}.json"


def kernel_file(name: str) -> Path:
    """Where the kernel whose pages have that name says how they are reached."""
    return Path(jupyter_runtime_dir()) / f"workbench-kernel-{name}.json"


def write(path: Path, facts: dict[str, Any]) -> None:
    """Put facts there for the owner's eyes alone; a file that is there already gives way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(facts, file)


def forget(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def read(path: Path) -> dict[str, Any]:
    """The facts there; {} where there are none, or where they are not the owner's own file."""
    try:
        found = path.lstat()
        own = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        if not (own and stat.S_ISREG(found.st_mode) and found.st_size <= LONGEST):
            return {}
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def served_below() -> str:
    """The path below which the Jupyter server that started this process serves us; "" for none."""
    place = read(server_file(os.getppid())).get("place", "")
    return place if isinstance(place, str) and place.startswith("/") else ""


def reached(name: str) -> Reached | None:
    """The pages of that name; None where no kernel has any."""
    if not NAME.fullmatch(name):
        return None
    facts = read(kernel_file(name))
    port, secret = facts.get("port"), facts.get("secret")
    if not isinstance(port, int) or not isinstance(secret, str) or not 0 < port < 65536:
        return None
    return Reached(port, secret)
