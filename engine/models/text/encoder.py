"""Texts to token ids by unfamiliar patterns, in processes with limits of time and memory.

The library matches patterns with a machine that goes back and tries again, and nothing ends it once
it has begun: a pattern and a text made for one another would keep a thread for good.
"""

import json

from tokenizers import Tokenizer as Rules

from engine.core.confined.children import Children
from engine.core.errors import BadInput

MOST = 5_000_000  # characters of a text: its message to the process stays under 32 MiB
EACH = 1_000_000  # characters for which a text has the time of one limit


class Encoder:
    """Encodes from any thread. Close it when done."""

    def __init__(self, rules: Rules) -> None:
        self._children = Children("engine.models.text.encode_child", "tokenizer", rules.to_str())

    def encode(self, text: str, special: bool = True) -> list[int]:
        """As `Tokenizer.encode`; raises BadInput also where it takes more than it may."""
        if len(text) > MOST:
            raise BadInput(f"tokenizer: a text of {len(text)} characters; at most {MOST} at once")
        told = self._children.ask(times=1 + len(text) // EACH, text=text, special=special)
        return list(map(int, json.loads(told)))

    def close(self) -> None:
        """End the processes."""
        self._children.close()
