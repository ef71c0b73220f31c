"""Log-probabilities in the shapes of OpenAI's two routes, and of vLLM's `prompt_logprobs`.

Of a long answer they are a quarter of a million: what can be is made as it is written, since so
many objects at once take Python's lock for a tenth of a second wherever they are let go.
"""

from collections.abc import Iterable, Iterator
from itertools import accumulate, chain
from typing import Any

from workbench.live.pieces import PromptFacts, TokenFacts


def of_chat(tokens: list[TokenFacts]) -> dict[str, Any]:
    """`logprobs` of a chat's choice."""
    return {
        "content": [
            {**_entry(text, value), "top_logprobs": [_entry(*top) for top in tops]}
            for text, value, tops in tokens
        ]
    }


def _entry(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode("utf-8", "replace"))}


def of_text(
    tokens: list[TokenFacts], prompt: Iterable[PromptFacts], begin: int = 0
) -> dict[str, Any]:
    """`logprobs` of a completion's choice, the prompt's own first where it is said again; those of
    likeliest tokens come one by one as they are written. `begin`: characters told before."""
    texts = [fact.text for fact in prompt] + [text for text, _, _ in tokens]
    likeliest = (dict(tops) or {text: value} for text, value, tops in tokens)
    return {
        "tokens": texts,
        "token_logprobs": [fact.logprob for fact in prompt] + [value for _, value, _ in tokens],
        "top_logprobs": chain(map(_tops, prompt), likeliest),
        "text_offset": list(accumulate(map(len, texts[:-1]), initial=begin)) if texts else [],
    }


def _tops(fact: PromptFacts) -> dict[str, float] | None:
    if fact.logprob is None:
        return None
    return {text: value for _, text, value in fact.tops} | {fact.text: fact.logprob}


def of_prompt(facts: Iterable[PromptFacts]) -> Iterator[dict[str, Any] | None]:
    """vLLM's `prompt_logprobs`: by token number, of each position; none of the first."""
    for fact in facts:
        if fact.logprob is None:
            yield None
            continue
        rows = {
            str(token): {"logprob": value, "rank": place, "decoded_token": text}
            for place, (token, text, value) in enumerate(fact.tops, 1)
        }
        own = {"logprob": fact.logprob, "rank": fact.rank, "decoded_token": fact.text}
        yield rows | {str(fact.token): own}
