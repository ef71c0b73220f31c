"""A self-contained page as a still picture, for places that show no live page.

Takes HTML that needs nothing from anywhere, gives PNG bytes, or None where no browser is installed.
"""

import io
import shutil
import subprocess
import tempfile
from pathlib import Path

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
STILL = "workbench-still"  # metadata of a notebook's output that repeats a live view as a picture
SETTLE = 4000  # milliseconds of the page's own time before the picture is taken
WIDTH = 960  # pixels of a picture that is kept
EDGE = 12  # pixels of empty ground under it
COLOURS = 64  # of one: flat areas and text need no more
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


def shrunk(png: bytes) -> bytes:
    """A picture of ours as PNG at most `WIDTH` wide and in `COLOURS` colours, without the empty
    ground under what is drawn."""
    from PIL import Image, ImageChops

    image = Image.open(io.BytesIO(png), formats=("PNG",)).convert("RGB")
    ground = Image.new("RGB", image.size, image.getpixel((0, image.height - 1)))
    drawn = ImageChops.difference(image, ground).getbbox()
    if drawn:
        image = image.crop((0, 0, image.width, min(image.height, drawn[3] + EDGE)))
    if image.width > WIDTH:
        high = round(image.height * WIDTH / image.width)
        image = image.resize((WIDTH, high), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()
