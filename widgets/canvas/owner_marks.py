"""Owner marks: how a canvas marks an owner, as numbers into the theme's hues and into three
textures."""

from functools import lru_cache

from widgets.theme import HUES, place, texture

TEXTURES = 3  # a dot, two of them, a ring; 0 is plain


@lru_cache(maxsize=8192)  # views ask for the same owners at every picture
def owner_mark(owner: str) -> tuple[int, int]:
    """The owner's hue, 0 to 7, and texture, 0 for the first eight owners and 1 to 3 beyond."""
    beyond = texture(owner)
    return place(owner) % len(HUES), (beyond - 1) % TEXTURES + 1 if beyond else 0
