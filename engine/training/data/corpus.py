"""The Python standard library's own sources as text: the corpus every user already has.

In comes the library's folder, out come its source files in a fixed order, split by file into
training and validation text with a digest that names exactly this text.
"""

import hashlib
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from engine.core.errors import BadInput
from engine.core.limits import read_bytes

# Tests are missing from common installations, tables of code points and generated help hardly read
# as Python, and what others installed is not the standard library.
SKIPPED = {
    *("__pycache__", "dist-packages", "encodings", "idle_test"),
    *("pydoc_data", "site-packages", "test", "tests"),
}
VALIDATION_SHARE = 20  # one file in this many is held out


@dataclass(frozen=True, slots=True)
class Source:
    """One source file: its path below the library's folder, with forward slashes, and its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """Source files of the two sides, each in path order. No file is on both."""

    training: tuple[Source, ...]
    validation: tuple[Source, ...]

    @property
    def digest(self) -> str:
        """SHA-256 over every path and text, both sides: equal digests are equal corpora."""
        digest = hashlib.sha256()
        for source in self.training + self.validation:
            for part in (source.path, source.text):
                data = part.encode()
                digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()


def those(corpus: Corpus, only: tuple[str, ...]) -> Corpus:
    """The sources whose paths begin with one of `only`. Raises BadInput where a side has none."""
    training, validation = (
        tuple(source for source in side if source.path.startswith(only))
        for side in (corpus.training, corpus.validation)
    )
    if not training or not validation:
        raise BadInput(f"too few files of {', '.join(only)} in this library; name other folders")
    return Corpus(training, validation)


def standard_library() -> Path:
    """The folder of the running interpreter's standard library."""
    return Path(sysconfig.get_path("stdlib"))


def gather(root: Path) -> Corpus:
    """Every UTF-8 `.py` file below `root` outside SKIPPED folders, `config-*` ones included.

    Pipes, devices and links that lead out of `root` are passed over. Raises BadInput where either
    side would be empty, and where a file is over a limit.
    """
    home, found = root.resolve(), root.rglob("*.py")
    own = (path for path in found if path.is_file() and path.resolve().is_relative_to(home))
    files = ((path.relative_to(root).as_posix(), path) for path in own)
    sources = [source for name, path in sorted(files) if (source := _read(name, path))]
    training = tuple(source for source in sources if not held_out(source.path))
    validation = tuple(source for source in sources if held_out(source.path))
    if not training or not validation:
        raise BadInput(f"{root}: too few .py files for a corpus; give a Python library's folder")
    return Corpus(training, validation)


def held_out(path: str) -> bool:
    """Whether the file is for validation: a hash of its path alone, so it never changes side."""
    return hashlib.sha256(path.encode()).digest()[0] * VALIDATION_SHARE < 256


def _read(name: str, path: Path) -> Source | None:
    folders = name.split("/")[:-1]
    if any(folder in SKIPPED or folder.startswith("config-") for folder in folders):
        return None
    if path.name.startswith("_sysconfigdata"):  # the build machine's paths and flags
        return None
    try:
        text = read_bytes(path, "text_bytes").decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:  # an old encoding kept on purpose, in a handful of files
        return None
    return Source(name, text) if text.strip() else None
