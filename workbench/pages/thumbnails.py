"""Thumbnails: the README's pictures of real runs, small, as addresses that a page carries."""

import base64
from functools import cache
from io import BytesIO
from pathlib import Path

PICTURES = Path(__file__).parents[2] / "notebooks/pictures"
WIDE = 480  # pixels: more than a card has, for screens of fine pixels


@cache
def thumbnail(name: str) -> str:
    """A `data:` address of `name`.png, its pixels at most `WIDE` across; "" where the pictures are
    not beside the code, as in an installed wheel."""
    path = PICTURES / f"{name}.png"
    if not path.is_file():
        return ""
    from PIL import Image

    with Image.open(path) as whole:
        high = round(whole.height * WIDE / whole.width)
        small = whole.convert("RGB").resize((WIDE, high), Image.Resampling.LANCZOS)
    out = BytesIO()
    small.quantize(32).save(out, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"
