"""The model that all threads think with: its weights, its cache memory and its tokenizer."""

from dataclasses import dataclass
from typing import Any

from engine.cache.tensors import Storage
from engine.inference.executor import Tokens
from engine.models.find import find
from engine.models.memory import require_memory
from engine.models.model import Model
from engine.models.tokenizer import Tokenizer
from engine.models.views import require_views
from engine.reasoning.config import ReasoningConfig


@dataclass(slots=True)
class Mind:
    """One model over one paged memory. `eos`: tokens that end a thread."""

    name: str
    model: Model
    storage: Storage
    tokenizer: Tokens | None = None
    eos: tuple[int, ...] = ()

    def header(self, page_size: int) -> dict[str, Any]:
        """What a run's header says of the model, with pages of that many tokens."""
        config = self.model.config
        return {
            "layers": config.layers,
            "heads": config.heads,
            "model": self.name,
            "device": self.model.device,
            "bytes_per_page": float(page_size * self.model.spec.bytes_per_token()),
        }


def open_mind(config: ReasoningConfig) -> Mind:
    """The model of a config with a cache of its size. Raises BadInput."""
    found = find(config.model)
    require_views(found.config)
    model = found.open(config.dtype, random=found.folder is None, seed=config.seed)
    tokenizer = None
    if found.folder is not None and (found.folder / "tokenizer.json").is_file():
        tokenizer = Tokenizer(found.folder)
    eos = found.config.eos + (tokenizer.eos if tokenizer else ())
    return mind_of(config, model, found.name, tokenizer, tuple(dict.fromkeys(eos)))


def mind_of(
    config: ReasoningConfig,
    model: Model,
    name: str = "",
    tokenizer: Tokens | None = None,
    eos: tuple[int, ...] = (),
) -> Mind:
    """`model` with the memory that `config` asks for. Raises BadInput where it does not fit."""
    require_views(model.config)
    size = config.page_size * model.spec.bytes_per_token()
    require_memory((config.pages + 1) * size, f"{config.pages} pages")
    storage = Storage(model.spec, config.pages, config.page_size, 0, model.device)
    return Mind(name, model, storage, tokenizer, eos)
