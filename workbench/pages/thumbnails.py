"""Thumbnails: small pictures of each system's main view, made of runs of this project by
`workbench catalogue --pictures datasets/thumbnails`.
"""

from functools import cache
from html import escape

from engine.core.paths import datasets

CSS = """
img.thumbnail { display: block; width: 100%; height: 120px; object-fit: cover; border-radius: 6px;
  object-position: left top; margin-bottom: 10px; background: #fff; }
img.thumbnail.dark { filter: invert(0.91) hue-rotate(180deg); }
"""


def thumbnail(slug: str, dark: bool) -> str:
    """The picture of a system as HTML, fetched once it is near; "" where none was kept."""
    if slug not in _kept():
        return ""
    return (
        f'<img class="thumbnail{" dark" if dark else ""}" alt="" loading="lazy" width="480" '
        f'height="180" src="./thumbnails/{escape(slug)}.png">'
    )


@cache
def _kept() -> frozenset[str]:
    """Slugs of the systems that have one."""
    return frozenset(path.stem for path in (datasets() / "thumbnails").glob("*.png"))
