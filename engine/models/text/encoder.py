"""Texts to token ids by unfamiliar patterns, in processes with limits of time and memory.

The library matches patterns with a machine that goes back and tries again, and nothing ends it once
it has begun: a pattern and a text made for one another would keep a thread for good.
"""

import json

from engine.core.confined.children import Children
from engine.models.text.tokenizer import Tokenizer


class Encoder:
    """Encodes from any thread. Close it when done."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._children = Children(
            "engine.models.text.encode_child", "tokenizer", tokenizer.rules.to_str()
        )

    def encode(self, text: str, special: bool = True) -> list[int]:
        """As `Tokenizer.encode`; raises BadInput also where it takes more than it may."""
        return list(map(int, json.loads(self._children.ask(text=text, special=special))))

    def close(self) -> None:
        """End the processes."""
        self._children.close()
