"""How long a described device would take for a trajectory's requests, one problem at a time.

In comes a trajectory that is over; it is run again on a modelled engine, each request generating as
many tokens as it did; out come virtual seconds. Texts are the recorded ones.
"""

import numpy as np

from engine.inference.engine import Engine
from engine.inference.executor import Built, Tokens
from engine.inference.request import Request, sampling
from engine.reasoning.weaving.trajectory import Ask, Limits, Marks, Reply, Trajectory, weave


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
        found, self._ended = self._ended, []
        return found


def modelled_seconds(
    done: Trajectory, built: Built, engine: Engine, tokenizer: Tokens, limits: Limits, marks: Marks
) -> float:
    """Virtual seconds from the first request of `done` to its end, nothing else under way."""
    engine.reset()
    start = built.clock.now()
    again = Trajectory(done.name, done.prompt, limits, marks, lambda *_: None)
    weave([again], Recorded(engine, tokenizer, done.replies))
    return built.clock.now() - start
