"""Grammars of answers by llguidance: JSON schemas and calls in running text, as token masks.

A grammar is compiled once for a request and walked by each of its answers; it is compiled in a
confined process first, since a hundred characters of schema can ask for hours. llguidance and not
xgrammar: both are kept well, and the first brings nothing with it (xgrammar: transformers, triton
and a compiler's runtime), reads a folder's own `tokenizer.json`, refuses by name what it does not
know of a schema, and computes masks when asked instead of tables for each schema before.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import llguidance
import numpy as np
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

from engine.core.confined.children import Children
from engine.core.errors import BadInput
from engine.models.text.grammar_child import line, matcher, tokens
from engine.models.text.schema_numbers import check_numbers

LONGEST = 1 << 16  # characters of a schema
ANY_OBJECT = {"type": "object"}
OPENS, CLOSES = "<tool_call>", "</tool_call>"  # what Qwen, Hermes and their like are trained on


class Grammars:
    """Compiles grammars over the tokens of one `tokenizer.json`, for a model of `vocab` logits."""

    def __init__(self, rules: str, vocab: int, eos: Sequence[int]) -> None:
        """Raises BadInput for a tokenizer that cannot be held to a grammar."""
        if not eos:
            raise BadInput("grammar: this model has no end token, which a whole answer ends with")
        self.vocab = vocab
        try:
            self._tokens = tokens(rules, vocab, eos)
        except (ValueError, RuntimeError) as fault:
            raise BadInput(
                f"grammar: this model's tokenizer cannot be held to one ({line(fault)})"
            ) from None
        opening = {"rules": rules, "vocab": vocab, "eos": list(eos)}
        self._children = Children("engine.models.text.grammar_child", "schema", opening)

    def schema(self, schema: Mapping[str, Any]) -> "GrammarGuide":
        """An answer that is JSON of this schema. Raises BadInput where the schema is none."""
        check_numbers(schema)
        text = json.dumps(schema)
        if len(text) > LONGEST:
            raise BadInput(f"schema: {len(text)} characters; at most {LONGEST}")
        return self._guide(llguidance.LLMatcher.grammar_from_json_schema(text), "schema")

    def calls(self, schemas: Sequence[Mapping[str, Any]]) -> "GrammarGuide":
        """Free text in which every <tool_call> … </tool_call> holds JSON of one of the schemas."""
        check_numbers(list(schemas))
        tag = llguidance.StructTag(
            trigger=OPENS, begin=f"{OPENS}\n", grammar={"anyOf": list(schemas)}, end=f"\n{CLOSES}"
        )
        return self._guide(llguidance.StructTag.to_grammar([tag], assume_special=False), "tools")

    def _guide(self, grammar: str, what: str) -> "GrammarGuide":
        self._children.ask(grammar=grammar, what=what)
        return GrammarGuide(matcher(self._tokens, grammar), self.vocab)

    def close(self) -> None:
        """End the processes that compile."""
        self._children.close()


class GrammarGuide:
    """One answer's walk through a grammar (an `engine.inference.requests.guide.Guide`)."""

    def __init__(self, matcher: llguidance.LLMatcher, vocab: int) -> None:
        self._matcher, self._vocab = matcher, vocab
        self._bits = allocate_token_bitmask(1, vocab)

    def forbid(self, scores_V: np.ndarray) -> None:
        """Put -inf, in place, on the logits of tokens that cannot come next."""
        fill_next_token_bitmask(self._matcher, self._bits)
        allowed_V = np.unpackbits(self._bits.view(np.uint8)[0], bitorder="little")
        scores_V[allowed_V[: len(scores_V)] == 0] = -np.inf

    def take(self, token: int) -> None:
        """`token` has come; once the answer is whole only the model's end token can follow."""
        if not self._matcher.is_stopped():
            self._matcher.consume_token(token)

    @property
    def broken(self) -> bool:
        """The grammar has become too complex to be walked on."""
        return bool(self._matcher.is_error())

    def fork(self) -> "GrammarGuide":
        """The same place, for a second answer."""
        return GrammarGuide(self._matcher.deep_copy(), self._vocab)
