"""The turn of a run of the tests: the number of its commit, so that what goes by turns of N comes
once in each N commits that follow one another; and what its last commit changed, which does not
wait for its turn.

`@pytest.mark.turns(number, *files)`: a test that runs at one commit in TURNS, when one of the files
has changed, and with --full.
"""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
TURNS = 5
RECIPES = tuple((ROOT / "engine" / "recipes").rglob("*.py"))


@cache
def turn_of_this_commit() -> int:
    """How many commits lead to this one, the first parent of each; of a shallow clone, which does
    not know, the hash as a number. 0 where there is no repository."""
    if _git("rev-parse", "--is-shallow-repository").strip() != "false":
        return int(_git("rev-parse", "HEAD").strip() or "0", 16)
    return int(_git("rev-list", "--count", "--first-parent", "HEAD").strip() or "0")


def due(number: int, *files: Path, turn: int | None = None) -> bool:
    """Whether it is the turn of what has this number, or one of its files has changed."""
    turn = turn_of_this_commit() if turn is None else turn
    return number % TURNS == turn % TURNS or not changed().isdisjoint(files)


@cache
def changed() -> frozenset[Path]:
    """The files that the last commit changed, and those that nobody has committed yet."""
    # The first commit has none before it, nor has a clone of the last one alone.
    since = "HEAD~1" if _git("rev-parse", "--quiet", "--verify", "HEAD~1") else "HEAD"
    names = _git("diff", "--name-only", "--no-renames", "--relative", "-z", since)
    names += _git("ls-files", "--others", "--exclude-standard", "-z")
    return frozenset(ROOT / name for name in names.split("\0") if name)


def _git(*words: str) -> str:
    """What git says here; "" where it cannot."""
    asked = ["git", "-C", str(ROOT), *words]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
