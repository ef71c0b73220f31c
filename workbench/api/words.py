"""`/tokenize` and `/detokenize`, as vLLM has them: texts or chats to token numbers and back."""

from typing import Any

from engine.core.errors import BadInput
from workbench.api.body import Body
from workbench.api.json_text import slices, write_parts
from workbench.api.requests import CHARACTERS, is_numbers, read_messages

TEXT = {"model", "prompt", "add_special_tokens", "return_token_strs"}
TALK = {"model", "messages", "add_generation_prompt", "return_token_strs"}


class Tokenize(Body):
    """`POST /tokenize`."""

    async def post(self) -> None:
        await self.send(await self.read(self._tokens, aside=True))

    def _tokens(self, fields: dict[str, Any]) -> list[bytes]:
        talk = fields.get("messages") is not None
        _known(fields, TALK if talk else TEXT)
        if fields.get("model") is not None:
            self.check_model(fields["model"])
        prompts, strings = self.live.prompts, _flag(fields, "return_token_strs", False)
        if talk:
            if not _flag(fields, "add_generation_prompt", True):
                raise BadInput("add_generation_prompt: always there; leave it out")
            tokens = prompts.chat(read_messages(fields["messages"]))
        else:
            text = fields.get("prompt")
            if not isinstance(text, str) or len(text) > CHARACTERS:
                raise BadInput(f"prompt: give a text of at most {CHARACTERS} characters")
            tokens = prompts.encode(text, _flag(fields, "add_special_tokens", True))
        told = {"count": len(tokens), "max_model_len": prompts.context, "tokens": tokens}
        named = [prompts.decode([token], special=True) for token in tokens] if strings else None
        return write_parts({**told, "token_strs": named})


class Detokenize(Body):
    """`POST /detokenize`."""

    async def post(self) -> None:
        await self.send(await self.read(self._text, aside=True))

    def _text(self, fields: dict[str, Any]) -> list[bytes]:
        _known(fields, {"model", "tokens"})
        if fields.get("model") is not None:
            self.check_model(fields["model"])
        tokens, prompts = fields.get("tokens"), self.live.prompts
        if not isinstance(tokens, list) or (tokens and not is_numbers(tokens)):
            raise BadInput("tokens: give a list of token numbers")
        if len(tokens) > CHARACTERS:
            raise BadInput(f"tokens: {len(tokens)} of them; at most {CHARACTERS}")
        if any(max(some) >= prompts.vocab for some in slices(tokens)):
            raise BadInput(f"tokens: one is outside 0 to {prompts.vocab - 1}")
        return write_parts({"prompt": prompts.decode(tokens, special=True)})


def _known(fields: dict[str, Any], names: set[str]) -> None:
    unknown = sorted(set(fields) - names)
    if unknown:
        raise BadInput(f"{unknown[0][:40]}: no such field; leave it out")


def _flag(fields: dict[str, Any], name: str, plain: bool) -> bool:
    value = fields.get(name)
    value = plain if value is None else value
    if not isinstance(value, bool):
        raise BadInput(f"{name}: give true or false")
    return value
