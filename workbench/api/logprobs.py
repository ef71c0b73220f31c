"""Log-probabilities in the shapes of OpenAI's two routes, and of vLLM's `prompt_logprobs`."""

from itertools import accumulate
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


def of_text(tokens: list[TokenFacts], prompt: list[PromptFacts]) -> dict[str, Any]:
    """`logprobs` of a completion's choice, the prompt's own first where it is said again."""
    texts = [fact.text for fact in prompt] + [text for text, _, _ in tokens]
    asked = [_tops(fact) for fact in prompt]
    return {
        "tokens": texts,
        "token_logprobs": [fact.logprob for fact in prompt] + [value for _, value, _ in tokens],
        "top_logprobs": asked + [dict(tops) for _, _, tops in tokens],
        "text_offset": list(accumulate(map(len, texts[:-1]), initial=0)) if texts else [],
    }


def _tops(fact: PromptFacts) -> dict[str, float] | None:
    if fact.logprob is None:
        return None
    return {text: value for _, text, value in fact.tops} | {fact.text: fact.logprob}


def of_prompt(facts: list[PromptFacts]) -> list[dict[str, Any] | None]:
    """vLLM's `prompt_logprobs`: by token number, of each position; none of the first."""
    found: list[dict[str, Any] | None] = []
    for fact in facts:
        if fact.logprob is None:
            found.append(None)
            continue
        rows = {
            str(token): {"logprob": value, "rank": place, "decoded_token": text}
            for place, (token, text, value) in enumerate(fact.tops, 1)
        }
        own = {"logprob": fact.logprob, "rank": fact.rank, "decoded_token": fact.text}
        found.append(rows | {str(fact.token): own})
    return found
