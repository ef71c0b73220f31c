"""Filling in between a prompt and a suffix, as models are trained to by special tokens of theirs.

Bavarian et al. (arXiv 2207.14255), in their order prefix, suffix, middle, which all named here use.
"""

from typing import Any

from engine.core.errors import BadInput

MARKS = (  # before the prefix, before the suffix, before what is filled in
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # Qwen2.5-Coder, CodeGemma
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder2, Granite code
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # DeepSeek-Coder
    ("▁<PRE>", "▁<SUF>", "▁<MID>"),  # Code Llama
)


def fill_in(tokenizer: Any, prefix: list[int], suffix: list[int], name: str) -> list[int]:
    """The tokens after which the model called `name` writes what stands between; both parts without
    special tokens around them. Raises BadInput where its tokenizer has no such tokens."""
    rules = getattr(tokenizer, "rules", None)
    for marks in MARKS:
        found = [None if rules is None else rules.token_to_id(mark) for mark in marks]
        if None not in found:
            before, between, after = found
            return [*tokenizer.encode(""), before, *prefix, between, *suffix, after]
    raise BadInput(f"suffix: {name} has no tokens to fill in with; leave it out")
