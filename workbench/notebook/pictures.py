"""A self-contained page as a still picture, for places that show no live page.

Takes HTML that needs nothing from anywhere, gives PNG bytes, or None where no browser is installed.
"""

import io
import shutil
import subprocess
import tempfile
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.errors import BadInput
from widgets.theme import hues, scheme, wrong

if TYPE_CHECKING:
    import PIL.Image

    from engine.core.log import Log

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
STILL = "workbench-still"  # metadata of a notebook's output that repeats a live view as a picture
SETTLE = 4000  # milliseconds of the page's own time before the picture is taken
WIDTH = 960  # pixels of a picture that is kept
EDGE = 12  # pixels of empty ground under it
COLOURS = 64  # of one beside the theme's own: flat areas and text need no more
NEAR = 6  # of 255: what lies so near to a colour of the theme is that colour
MINIATURE = (640, 240)  # pixels of a small picture before it is made three quarters of that
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
    """A picture of ours as PNG at most `WIDTH` wide, in the theme's colours and `COLOURS` more,
    without the empty ground under what is drawn."""
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
    palette = Image.new("P", (1, 1))
    palette.putpalette(bytes(part for colour in _palette(image) for part in colour))
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def miniature(log: "Log", view: str) -> bytes:
    """What that view marks at the run's telling moment, without words around it, as a small PNG
    of few colours. Raises BadInput where no browser drew it."""
    from PIL import Image

    from widgets.export.export import page

    drawn = picture(page(log, [view], is_still=True, is_bare=True), *MINIATURE)
    if drawn is None:
        raise BadInput(f"no browser drew {view}; install one of {', '.join(BROWSERS)}")
    whole = Image.open(io.BytesIO(drawn), formats=("PNG",)).convert("RGB")
    if all(low == high for low, high in whole.getextrema()):
        raise BadInput(f"{view}: the browser drew nothing of it")
    small = whole.resize(tuple(3 * side // 4 for side in MINIATURE), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    small.quantize(32, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def _palette(image: "PIL.Image.Image") -> list[tuple[int, ...]]:
    """The theme's colours as they are, since among a picture's most frequent ones alone two owners'
    hues become one; and those that stand for all others."""
    known = {
        tuple(bytes.fromhex(colour[1:]))
        for dark in (False, True)
        for colour in (*hues(dark), wrong(dark), *astuple(scheme(dark)))
    }
    found = bytes(image.quantize(COLOURS).getpalette() or ())[: 3 * COLOURS]
    others = zip(found[0::3], found[1::3], found[2::3], strict=True)
    return [*known, *(other for other in others if all(_far(other, each) for each in known))]


def _far(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two colours are more than `NEAR` apart in red, green or blue."""
    return max(abs(a - b) for a, b in zip(one, other, strict=True)) > NEAR
