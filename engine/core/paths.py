"""Paths of the shipped data; the only place that knows where it lies."""

import os
from functools import lru_cache
from pathlib import Path

from engine.core.errors import BadInput

FOLDER = Path(".cache") / "parallel-workbench"  # under the user's home


def own_cache() -> Path:
    """The user's folder for what is kept between runs. It need not be there, nor be writable."""
    try:
        return Path.home() / FOLDER
    except RuntimeError:  # a user without a home: below a file, where nothing is nor can be
        return Path(os.devnull) / FOLDER


def datasets() -> Path:
    """The folder of shipped data: beside the packages in a checkout, inside them in a wheel."""
    here = Path(__file__).resolve().parent
    checkout = here.parent.parent / "datasets"
    return checkout if checkout.is_dir() else here / "_datasets"


@lru_cache(maxsize=1024)  # data that is shipped stays where it is; links take long to follow
def dataset(name: str) -> Path:
    """The path of one shipped file or folder, such as `hardware` or `models/stdlib-5m`.

    Raises BadInput where it does not exist or where `name` leads out of the data folder.
    """
    return confined(datasets(), name)


def confined(root: Path, name: str) -> Path:
    """`root / name` with links resolved, refused unless it exists and stays inside `root`."""
    root = root.resolve()
    if "\0" in name:
        raise BadInput(f"path {name!r}: holds a NUL character; give a plain name")
    try:
        path = (root / name).resolve()
    except (OSError, RuntimeError):  # a name too long; links in a circle
        raise BadInput(f"path {name[:80]!r}: leads nowhere in {root.name}/") from None
    if not path.is_relative_to(root):
        raise BadInput(f"path {name!r}: leads outside {root.name}/; give a name inside it")
    if not path.exists():
        raise BadInput(f"path {name!r}: no such file in {root.name}/")
    return path
