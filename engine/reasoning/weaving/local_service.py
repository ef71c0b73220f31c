"""Our own engine in this process as a service: asks become ordinary requests of its batch."""

import numpy as np

from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.core.run import Live
from engine.inference.engine import Engine
from engine.inference.executor import Built
from engine.inference.request import Request, sampling
from engine.inference.run import obey
from engine.reasoning.weaving.trajectory import Ask, Reply


class LocalService:
    """Answers asks by an engine, which finds the prefixes they share by itself."""

    def __init__(self, engine: Engine, built: Built, live: Live, temperature: float = 0.0) -> None:
        if built.tokenizer is None:
            model = built.executor.facts.model
            raise BadInput(f"model {model!r}: it has no tokenizer; threads are forked by text")
        self.engine, self.built, self.live = engine, built, live
        self.tokenizer, self.temperature = built.tokenizer, temperature
        self._ended: list[Reply] = []

    def ask(self, ask: Ask) -> None:
        """Hand a request in; one that makes no sense comes back as a failed reply."""
        request = Request(
            np.array(self.tokenizer.encode(ask.prompt), np.int32),
            sampling(max_tokens=ask.tokens, temperature=self.temperature, stop=(ask.stop,)),
            id=ask.name,
            parent=ask.parent,
            on_end=self._take,
        )
        try:
            self.engine.add(request)
        except BadInput as fault:
            self._ended.append(Reply(ask.name, "", 0, "failed", str(fault)))
            return
        self.engine.hear()
        if ask.reads:
            now = self.engine.clock.now()
            self.engine.emit(
                Mark(now, ask.name, "join", f"{ask.name} reads {', '.join(ask.reads)}")
            )

    def replies(self) -> list[Reply]:
        """Step until a request has ended."""
        while not self._ended and self.engine.busy:
            for command in self.live.poll(self.engine.clock.now()):
                obey(self.engine, self.built, command)
            self.engine.step()
        found, self._ended = self._ended, []
        return found

    def _take(self, request: Request) -> None:
        tokens = len(request.generated)
        if request.state == "finished":
            self._ended.append(Reply(request.id, request.text, tokens, request.reason))
        else:
            fault = f"{request.state}: {request.reason}" if request.reason else request.state
            self._ended.append(Reply(request.id, "", tokens, "failed", fault))
