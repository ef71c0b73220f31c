"""What a fleet is made of beside its config: executors of replicas, their link, model facts."""

from collections.abc import Callable
from typing import NamedTuple

from engine.fleet.pooled_cache import PooledCache
from engine.hardware.link import Link
from engine.inference.config import InferenceConfig
from engine.inference.executors.executor import Executor
from engine.inference.running import pages_for


class Built(NamedTuple):
    """Bytes, layers and tokens of the model, and who stands under a replica and between two."""

    executor: Callable[[int], Executor]  # of a replica
    link: Link
    bytes_per_page: float
    layers: int
    context: int
    pooled: Callable[[], PooledCache] | None = None  # makes the cache that all reach, if any

    def refusal(self, tokens: int, engine: InferenceConfig) -> str:
        """Why no replica can serve so many tokens; "" where each can."""
        pages = pages_for(tokens, engine.page_size)
        if pages > engine.pages:
            return f"needs {pages} pages for {tokens} tokens, a replica has {engine.pages}"
        if tokens > self.context:
            return f"{tokens} tokens, the model takes {self.context}"
        return ""
