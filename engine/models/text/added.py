"""Added tokens of a `tokenizer.json`, held against the numbers that the library gives them."""

import json
import re
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Rules

from engine.core.errors import BadInput

ADDED_TOKENS = re.compile(rb'"added_tokens"\s*:\s*\[')
BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]]')  # texts too, so that theirs are passed over


def check_added(file: Path, data: bytes, rules: Rules) -> None:
    """Raises BadInput where an added token has another number than the file says: the library
    gives those that the model does not know the next free ones, whatever stands there."""
    place = ADDED_TOKENS.search(data)
    told = None if place is None else json_at(data, place.end() - 1)
    for token in told if isinstance(told, list) else []:
        number = rules.token_to_id(token["content"])
        if number != token["id"]:
            raise BadInput(
                f"{file}: added token {token['content'][:80]!r} has number {token['id']}, "
                f"where the vocabulary leads to {number}; restore it"
            )


def json_at(data: bytes, start: int) -> Any:
    """The JSON value that begins there, of a file that the library has read."""
    depth, end = 0, start
    for found in BRACKETS.finditer(data, start):
        depth += {b"[": 1, b"]": -1}.get(found[0], 0)
        end = found.end()
        if not depth:
            break
    return json.loads(data[start:end])
