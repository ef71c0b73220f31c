"""Services on engines of this process: asks become requests of a batch, real or only modelled."""

import numpy as np

from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built, Tokens
from engine.inference.requests.request import Request, sampling
from engine.reasoning.fork_join.trajectory import (
    Ask,
    Limits,
    Marks,
    Reply,
    Trajectory,
    fork_and_join,
)


class LocalService:
    """Answers asks by an engine, which finds the prefixes they share by itself."""

    def __init__(
        self, engine: Engine, built: Built, temperature: float = 0.0, cut: int = 0
    ) -> None:
        """`cut`: a mistake, tokens at the end of each prompt that do not arrive."""
        if built.tokenizer is None:
            model = built.executor.facts.model
            raise BadInput(f"model {model!r}: it has no tokenizer; threads are forked by text")
        self.engine, self.built = engine, built
        self.tokenizer, self.temperature = built.tokenizer, temperature
        self.cut = cut
        self._ended: list[Reply] = []

    def ask(self, ask: Ask) -> None:
        """Hand a request in; one that makes no sense comes back as a failed reply."""
        tokens = self.tokenizer.encode(ask.prompt)
        request = Request(
            np.array(tokens[: len(tokens) - self.cut], np.int32),
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
        """Take a step, if nothing has ended."""
        if not self._ended and self.engine.busy:
            self.engine.step()
        ended, self._ended = self._ended, []
        return ended

    def _take(self, request: Request) -> None:
        tokens = len(request.generated)
        if request.state == "finished":
            self._ended.append(Reply(request.id, request.text, tokens, request.reason))
        else:
            fault = f"{request.state}: {request.reason}" if request.reason else request.state
            self._ended.append(Reply(request.id, "", tokens, "failed", fault))


class Recorded:
    """A service that says again what was said, in the time its engine takes for as many tokens."""

    def __init__(self, engine: Engine, tokenizer: Tokens, known: dict[str, Reply]) -> None:
        self.engine, self.tokenizer, self.known = engine, tokenizer, known
        self._ended: list[Reply] = []

    def ask(self, ask: Ask) -> None:
        reply = self.known[ask.name]
        if not reply.tokens:
            self._ended.append(reply)
            return
        wish = sampling(max_tokens=reply.tokens, ignore_eos=True)
        prompt = np.array(self.tokenizer.encode(ask.prompt), np.int32)
        self.engine.add(
            Request(prompt, wish, id=ask.name, on_end=lambda _: self._ended.append(reply))
        )

    def replies(self) -> list[Reply]:
        while not self._ended and self.engine.busy:
            self.engine.step()
        ended, self._ended = self._ended, []
        return ended


def modelled_seconds(
    done: Trajectory, built: Built, engine: Engine, tokenizer: Tokens, limits: Limits, marks: Marks
) -> float:
    """Virtual seconds that a described device would take for a trajectory that is over.

    Its requests are run again on a modelled engine, each generating as many tokens as it did, with
    nothing else under way; texts are the recorded ones.
    """
    engine.reset()
    start = built.clock.now()
    again = Trajectory(done.name, done.prompt, limits, marks, lambda *_: None)
    list(fork_and_join([again], Recorded(engine, tokenizer, done.replies)))
    return built.clock.now() - start
