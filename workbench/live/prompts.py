"""What clients write, as token numbers: lengths weighed first, chat templates rendered aside."""

import threading
from collections.abc import Sequence
from typing import Any

from engine.core.errors import BadInput
from engine.models.text.grammar import Grammars
from engine.models.text.renderer import Renderer
from workbench.live.fill_in import fill_in

LONGEST = 1024  # characters of a token, where a tokenizer does not say


class Prompts:
    """Encodes for a model called `name` that takes `context` tokens; from any thread.

    `tokenizer` is None for a model without one. Close it when done.
    """

    def __init__(
        self, name: str, tokenizer: Any, context: int, vocab: int = 0, eos: Sequence[int] = ()
    ) -> None:
        """`vocab`: logits of the model; `eos`: its end tokens."""
        self.name, self.tokenizer, self.context = name, tokenizer, context
        self.vocab, self.eos = vocab, eos
        self._lock = threading.Lock()
        self._grammars: Grammars | None = None  # once a grammar has been asked for
        self._renderer: Renderer | None = None  # once a chat has been asked for

    def encode(
        self, prompt: str | Sequence[int], special: bool = True, suffix: str = "",
        name: str = "prompt",
    ) -> list[int]:  # fmt: skip
        """A prompt's token numbers; with a `suffix` those after which what stands between is
        written. Raises BadInput, with its `name`, for one too long, or without a tokenizer."""
        if suffix:
            rules, before = self._rules(), self.encode(prompt, special=False)
            return fill_in(rules, before, self.encode(suffix, special=False), self.name)
        if not isinstance(prompt, str):
            return list(prompt)
        self._check(len(prompt), name)
        return self._encoded(prompt, special)

    @property
    def grammars(self) -> Grammars:
        """What holds answers to a grammar; made when first asked for."""
        rules = getattr(self._rules(), "rules", None)
        if rules is None:
            raise BadInput(f"model {self.name}: no tokenizer.json, which a grammar is built on")
        with self._lock:
            if self._grammars is None:
                self._grammars = Grammars(rules.to_str(), self.vocab, self.eos)
            return self._grammars

    def decode(self, tokens: Sequence[int], special: bool = False) -> str:
        return str(self._rules().decode(list(tokens), special))

    def check(self, tokens: Sequence[int]) -> None:
        """Raises BadInput for tokens the model has not, or more than it takes."""
        if not tokens or len(tokens) > self.context:
            raise BadInput(f"input: {len(tokens)} tokens; give 1 to {self.context}")
        if max(tokens) >= self.vocab:
            raise BadInput(f"input: a token is outside 0 to {self.vocab - 1}")

    def chat(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = ()
    ) -> list[int]:
        """Messages as the model's template has them; one below the other where it has none."""
        rules = self._rules()
        if getattr(rules, "template", None) is None:
            return self.encode("\n".join(message["content"] for message in messages))
        self._check(sum(len(message["content"]) for message in messages))
        with self._lock:
            self._renderer = renderer = self._renderer or Renderer()
        extra = {"add_generation_prompt": True, **rules.special_texts}
        if tools:
            extra["tools"] = list(tools)
        text = renderer.render(rules.template, [dict(message) for message in messages], **extra)
        self._check(len(text))
        return self._encoded(text, special=False)

    @property
    def at_once(self) -> bool:
        """Whether texts are encoded here, and not in a process that has to be waited for."""
        return bool(getattr(self.tokenizer, "familiar", True))

    def fit(self, tokens: Sequence[int]) -> None:
        """Raises BadInput for a prompt that leaves no room for an answer."""
        if len(tokens) >= self.context:
            raise BadInput(
                f"request: the prompt has {len(tokens)} tokens, the model takes {self.context} "
                "with the answer; shorten it"
            )

    def _encoded(self, text: str, special: bool) -> list[int]:
        return list(self._rules().encode(text, special))

    def _check(self, characters: int, name: str = "prompt") -> None:
        """Refuse what cannot fit even if every token were the longest there is."""
        most = self.context * getattr(self.tokenizer, "longest", LONGEST)
        if characters > most:
            raise BadInput(
                f"{name}: {characters} characters; the model's {self.context} tokens hold at most "
                f"{most}; shorten it"
            )

    def _rules(self) -> Any:
        if self.tokenizer is None:
            raise BadInput(f"model {self.name}: no tokenizer; give token numbers")
        return self.tokenizer

    def close(self) -> None:
        """End what renders templates, compiles grammars and works by unfamiliar patterns."""
        for held in (self._renderer, self._grammars, self.tokenizer):
            if hasattr(held, "close"):
                held.close()
