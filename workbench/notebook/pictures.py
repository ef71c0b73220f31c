"""A self-contained page as a still picture, for places that show no live page.

Takes HTML that needs nothing from anywhere, gives PNG bytes, or None where no browser is installed.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
STILL = "workbench-still"  # metadata of a notebook's output that repeats a live view as a picture
SETTLE = 4000  # milliseconds of the page's own time before the picture is taken
PATIENCE = 60.0  # seconds for the browser as a whole


def browser() -> str | None:
    """The path of a browser of this machine; None where there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def picture(page: str, width: int = 1280, height: int = 900) -> bytes | None:
    """`page` as it looks in a window of that many pixels; None where it could not be taken."""
    program = browser()
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "page.html", Path(folder) / "page.png"
        source.write_text(page, encoding="utf-8")
        words = [
            program,
            "--headless",
            "--no-sandbox",  # the page is ours and forbids itself every request
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder}/profile",
            f"--window-size={width},{height}",
            f"--virtual-time-budget={SETTLE}",
            f"--screenshot={target}",
            source.as_uri(),
        ]
        try:
            subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return target.read_bytes() if target.is_file() else None
