"""LoadedModel: what threads run on, an executor with paged KV storage, tokenizer and clock."""

from dataclasses import dataclass
from typing import Any

from engine.cache.tensors import Storage
from engine.core.clock import Clock, WallClock
from engine.core.errors import BadInput
from engine.inference.executors.executor import Executor, Tokens
from engine.inference.executors.tensors.real_executor import RealExecutor, executor_for
from engine.models.config import ModelConfig
from engine.models.kv import cache_spec
from engine.models.loading.find import find
from engine.models.model import Model
from engine.models.view_attention import require_views
from engine.reasoning.threads.config import ReasoningConfig


@dataclass(slots=True)
class LoadedModel:
    """One model over one paged memory, run here or modelled. `clock`: the one it is under."""

    name: str
    config: ModelConfig
    executor: Executor
    clock: Clock
    tokenizer: Tokens | None = None

    @property
    def eos(self) -> tuple[int, ...]:
        """Tokens that end a thread."""
        return self.executor.facts.eos

    @property
    def model(self) -> Model:
        """The model's tensors. Raises BadInput where they are only modelled."""
        return self._real().model

    @property
    def storage(self) -> Storage:
        """Where its cache lies. Raises BadInput where it is only modelled."""
        return self._real().storage

    @property
    def variant(self) -> str:
        """What runs it."""
        return self.executor.variant if isinstance(self.executor, RealExecutor) else "modelled"

    def header(self, page_size: int) -> dict[str, Any]:
        """What a run's header says of the model, with pages of that many tokens."""
        facts = self.executor.facts
        size = page_size * cache_spec(self.config, facts.dtype).bytes_per_token()
        return {**facts.header(), "model": self.name, "bytes_per_page": float(size)}

    def _real(self) -> RealExecutor:
        if not isinstance(self.executor, RealExecutor):
            raise BadInput(f"model {self.name!r}: modelled, not run; choose the executor `real`")
        return self.executor


def open_model(config: ReasoningConfig) -> LoadedModel:
    """The model of a config with a cache of its size. Raises BadInput."""
    found = find(config.model)
    require_views(found.config)
    built = config.executor.build(config.serving())
    return LoadedModel(found.name, found.config, built.executor, built.clock, built.tokenizer)


def loaded_model_of(
    config: ReasoningConfig,
    model: Model,
    name: str = "",
    tokenizer: Tokens | None = None,
    eos: tuple[int, ...] = (),
) -> LoadedModel:
    """`model` with the memory that `config` asks for. Raises BadInput where it does not fit."""
    require_views(model.config)
    executor = executor_for(config.serving(), model, name, eos)
    return LoadedModel(name, model.config, executor, WallClock(), tokenizer)
