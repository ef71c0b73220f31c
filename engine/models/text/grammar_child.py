"""The process in which a grammar is compiled for the first time, so that a bomb goes off there."""

import sys
from collections.abc import Sequence
from typing import Any

import llguidance

from engine.core.confined.child import read, serve

NOTHING = "NoExtensionBias"


def tokens(rules: str, vocab: int, eos: Sequence[int]) -> llguidance.LLTokenizer:
    """The tokens that grammars are walked by. Raises ValueError or RuntimeError."""
    return llguidance.LLTokenizer(rules, n_vocab=vocab, eos_token=list(eos))


def matcher(held: llguidance.LLTokenizer, grammar: str) -> llguidance.LLMatcher:
    """A grammar compiled; `is_error` where it is none."""
    return llguidance.LLMatcher(held, grammar, log_level=0)


def line(fault: object) -> str:
    """What is wrong; of a grammar that no token can begin the library tells its state alone."""
    said = " ".join(str(fault).split("<state>")[0].split())[:200]
    return "no answer can begin; does it refer to itself alone?" if said == NOTHING else said


def main(memory: int) -> None:
    opening = read(sys.stdin.buffer)
    if opening is None:
        return
    held = tokens(opening["rules"], opening["vocab"], opening["eos"])

    def answer(asked: dict[str, Any]) -> dict[str, str]:
        """Nothing, or what is wrong with the grammar: when compiled, or at its first token."""
        made = matcher(held, asked["grammar"])
        if not made.is_error():
            made.compute_bitmask()
        if made.is_error():
            return {"refused": f"{asked['what']}: {line(made.get_error())}"}
        return {"text": ""}

    serve(memory, answer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
