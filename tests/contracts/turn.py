"""The turn of a run of the tests: a number that a commit fixes, so that another commit's run tries
other samples, and all processes of one run the same."""

import subprocess
from pathlib import Path


def turn_of_this_commit() -> int:
    """The commit's hash as a number; 0 where there is no repository."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(said.strip(), 16)
