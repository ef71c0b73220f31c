"""`POST /v1/embeddings`: a vector of length one for each text, the last token's hidden state."""

import asyncio
import base64
from typing import Any

import numpy as np
from tornado.web import HTTPError

from engine.core.errors import BadInput
from workbench.api.body import Body
from workbench.api.json_text import write_parts
from workbench.api.requests import read_prompts, read_user

KNOWN = {"model", "input", "encoding_format", "dimensions", "user"}
Answer = tuple[np.ndarray | None, str]


class Embeddings(Body):
    """`POST /v1/embeddings`."""

    async def post(self) -> None:
        prompts, packed, wanted = await self.read(self._asked, aside=True)
        rows: list[dict[str, Any]] = []
        for index, tokens in enumerate(prompts):
            if self.gone:
                return
            vector, why = await self._vector(tokens)
            if vector is None:
                raise HTTPError(503 if why == self.live.failure else 400, why)
            if wanted not in (None, len(vector)):
                raise HTTPError(400, f"dimensions: this model gives {len(vector)}; leave it out")
            held = _packed(vector) if packed else vector.tolist()
            rows.append({"object": "embedding", "index": index, "embedding": held})
        count = sum(map(len, prompts))
        usage = {"prompt_tokens": count, "total_tokens": count}
        told = {"object": "list", "data": rows, "model": self.live.name, "usage": usage}
        await self.send(await asyncio.to_thread(write_parts, told))

    def _asked(self, fields: dict[str, Any]) -> tuple[list[list[int]], bool, int | None]:
        unknown = sorted(set(fields) - KNOWN)
        if unknown:
            raise BadInput(f"{unknown[0][:40]}: no such field; leave it out")
        self.check_model(fields.get("model"))
        read_user(fields)
        form, wanted = fields.get("encoding_format") or "float", fields.get("dimensions")
        if form not in ("float", "base64"):
            raise BadInput("encoding_format: float or base64")
        if wanted is not None and (type(wanted) is not int or wanted < 1):
            raise BadInput("dimensions: give a number, or leave it out")
        live, found = self.live, []
        for prompt in read_prompts(fields.get("input"), "input"):
            tokens = live.prompts.encode(prompt)
            live.prompts.check(tokens)
            found.append(tokens)
        return found, form == "base64", wanted

    async def _vector(self, tokens: list[int]) -> Answer:
        loop = asyncio.get_running_loop()
        given: asyncio.Future[Answer] = loop.create_future()

        def tell(vector: np.ndarray | None, why: str) -> None:
            loop.call_soon_threadsafe(lambda: given.done() or given.set_result((vector, why)))

        self.live.embeddings.ask(tokens, tell)
        if self.live.failure:
            self.live.embeddings.refuse(self.live.failure)
        return await given


def _packed(vector: np.ndarray) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
