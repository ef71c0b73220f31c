"""Builds the extension from its sources into `built/` (`python -m workbench.labextension.build`).

What it makes is committed, so that installing needs no node; making it again does, and the npm
registry. `built/sources.sha256` says from which sources it was made, which a test compares.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
BUILT = HERE / "built"
MARK = "sources.sha256"


def sources() -> list[Path]:
    """Every file the build reads."""
    named = [HERE / name for name in ("package.json", "tsconfig.json", "yarn.lock", ".yarnrc.yml")]
    return sorted([*named, *(HERE / "src").iterdir(), *(HERE / "style").iterdir()])


def fingerprint() -> str:
    """Of all sources together: names and bytes."""
    whole = hashlib.sha256()
    for path in sources():
        name, data = path.relative_to(HERE).as_posix(), path.read_bytes()
        whole.update(f"{name} {len(data)}\n".encode() + data)
    return whole.hexdigest()


def build(target: Path) -> None:
    """Install the build's packages and build into `target`; both in a folder of its own."""
    programs = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as folder:
        for path in sources():
            copy = Path(folder) / path.relative_to(HERE)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, copy)
        for step in ("jlpm install --immutable", "jlpm run tsc", "jupyter-builder build ."):
            name, *words = step.split()
            subprocess.run([programs / name, *words], cwd=folder, check=True)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(Path(folder) / "built", target)
    (target / MARK).write_text(fingerprint() + "\n")


if __name__ == "__main__":
    build(BUILT)
