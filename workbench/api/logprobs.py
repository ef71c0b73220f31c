"""Log-probabilities in the shapes of OpenAI's two routes, and of vLLM's `prompt_logprobs`.

Of a long answer they are a quarter of a million: what can be is made as it is written, since so
many objects at once take Python's lock for a tenth of a second wherever they are let go.

A token that is but a part of a character is named by its bytes, bytes:\\xe2\\x80, as OpenAI has it:
as the replacement character, several of a position's likeliest would be one.
"""

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from workbench.live.pieces import PromptFacts, Said, TokenFacts


def of_chat(tokens: list[TokenFacts]) -> dict[str, Any]:
    """`logprobs` of a chat's choice."""
    return {
        "content": [
            {**_entry(text, value), "top_logprobs": [_entry(*top) for top in tops]}
            for text, value, tops in tokens
        ]
    }


def _entry(said: Said, logprob: float) -> dict[str, Any]:
    raw = said.encode("utf-8", "replace") if isinstance(said, str) else said
    return {"token": _name(said), "logprob": logprob, "bytes": list(raw)}


def _name(said: Said) -> str:
    if isinstance(said, str):
        return said
    return "bytes:" + "".join(f"\\x{byte:02x}" for byte in said)


class Offsets:
    """Where each token of a growing text begins, in characters: parts of one begin at one place."""

    def __init__(self) -> None:
        self.at = 0
        self._reader = codecs.getincrementaldecoder("utf-8")("replace")
        self._inside = False  # a character

    def place(self, said: Said) -> int:
        """Of the next token."""
        if self._inside and (isinstance(said, str) or said[0] & 0xC0 != 0x80):  # it stays a part
            self.at += len(self._reader.decode(b"", final=True))
            self._inside = False
        begin = self.at
        if isinstance(said, str):
            self.at += len(said)
        else:
            self.at += len(self._reader.decode(said))
            self._inside = bool(self._reader.getstate()[0])
        return begin


def of_text(
    tokens: list[TokenFacts], prompt: Iterable[PromptFacts], offsets: Offsets
) -> dict[str, Any]:
    """`logprobs` of a completion's choice, the prompt's own first where it is said again; those of
    likeliest tokens come one by one as they are written. `offsets`: after
    what was told before."""
    said = [fact.text for fact in prompt] + [text for text, _, _ in tokens]
    likeliest = ({_name(t): v for t, v in tops or ((own, value),)} for own, value, tops in tokens)
    return {
        "tokens": list(map(_name, said)),
        "token_logprobs": [fact.logprob for fact in prompt] + [value for _, value, _ in tokens],
        "top_logprobs": chain(map(_tops, prompt), likeliest),
        "text_offset": list(map(offsets.place, said)),
    }


def _tops(fact: PromptFacts) -> dict[str, float] | None:
    if fact.logprob is None:
        return None
    return {_name(said): v for _, said, v in fact.tops} | {_name(fact.text): fact.logprob}


def of_prompt(facts: Iterable[PromptFacts]) -> Iterator[dict[str, Any] | None]:
    """vLLM's `prompt_logprobs`: by token number, of each position; none of the first."""
    for fact in facts:
        if fact.logprob is None:
            yield None
            continue
        rows = {
            str(token): {"logprob": value, "rank": place, "decoded_token": _name(said)}
            for place, (token, said, value) in enumerate(fact.tops, 1)
        }
        own = {"logprob": fact.logprob, "rank": fact.rank, "decoded_token": _name(fact.text)}
        yield rows | {str(fact.token): own}
