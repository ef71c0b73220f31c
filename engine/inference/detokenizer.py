"""Detokenizer: turns tokens into text as they are drawn, decoding each token number once.

A token's piece is what it adds after another token. Pieces that end inside a UTF-8 character are
held back, for each thread, until the character is whole.
"""

from collections.abc import Sequence

from engine.inference.executors.executor import Tokens

BROKEN = "\N{REPLACEMENT CHARACTER}"
LONGEST = 8  # tokens that one character can be spread over; more are no character


class Detokenizer:
    """The text of each token. Without a tokenizer a token reads as its number."""

    def __init__(self, tokenizer: Tokens | None) -> None:
        self.tokenizer = tokenizer
        self.known: dict[int, str | None] = {}  # None: not a whole character by itself
        self.held: dict[str, list[int]] = {}  # thread -> tokens of an unfinished character
        self.lead: list[int] = tokenizer.encode("a")[-1:] if tokenizer else []
        self.lead_text = tokenizer.decode(self.lead) if tokenizer else ""

    def push(self, thread: str, token: int) -> str:
        """The text that `token` completes in `thread`."""
        if thread not in self.held:
            piece = self.known[token] if token in self.known else self._learn(token)
            if piece is not None:
                return piece
        held = self.held.setdefault(thread, [])
        held.append(token)
        text = self._after_lead(held)
        if text.endswith(BROKEN) and len(held) < LONGEST:
            return ""
        del self.held[thread]
        return text

    def many(self, threads: Sequence[str], tokens: Sequence[int]) -> list[str]:
        """`push` for one token of each thread."""
        if not self.held:
            try:
                found = [self.known[token] for token in tokens]
                if None not in found:
                    return found  # type: ignore[return-value]
            except KeyError:
                pass
        return [self.push(thread, token) for thread, token in zip(threads, tokens, strict=True)]

    def glance(self, tokens: Sequence[int]) -> list[str]:
        """What each token reads as by itself, whatever thread might say it."""
        known, learn = self.known, self._learn
        return [(known[t] if t in known else learn(t)) or BROKEN for t in tokens]

    def text(self, tokens: Sequence[int]) -> str:
        """The text of a whole answer."""
        if self.tokenizer is None:
            return "".join(self._number(token) for token in tokens)
        return self._after_lead(list(tokens))

    def forget(self, thread: str) -> None:
        """`thread` is over."""
        self.held.pop(thread, None)

    def _learn(self, token: int) -> str | None:
        text = self._number(token) if self.tokenizer is None else self._after_lead([token])
        self.known[token] = None if BROKEN in text else text
        return self.known[token]

    def _after_lead(self, tokens: list[int]) -> str:
        assert self.tokenizer is not None
        return self.tokenizer.decode(self.lead + tokens)[len(self.lead_text) :]

    @staticmethod
    def _number(token: int) -> str:
        return f" {token}"
