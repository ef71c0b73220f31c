"""Random small models that speak the words of streams, for tests without a shipped model."""

from engine.core.config import update
from engine.models.model import Model
from engine.reasoning.multi_stream.config import StreamsConfig
from engine.reasoning.streaming_thinking.streaming_thinking import ReadingConfig
from engine.reasoning.streams.words import StreamWords, words
from engine.reasoning.threads.loaded_model import LoadedModel, loaded_model_of
from engine.tasks import ledger, running_sum
from tests.engine.models.small import config as shape_of
from tests.engine.models.small import weights


class Entries:
    """The entries of some streams, numbered as they come."""

    def __init__(self, letters):
        self.ids = {word: number for number, word in enumerate(words(letters))}

    def token_to_id(self, token):
        return self.ids.get(token)


def spoken(task):
    return StreamWords(Entries(task.LETTERS), task.LETTERS)


def loaded_for(config, family="qwen3", *, plain=False) -> LoadedModel:
    shape = shape_of(family, max_position_embeddings=256)
    made = loaded_model_of(config.reasoning(), Model(shape, weights(shape), plain=plain), family)
    for tensors in made.storage.kv.tensors:
        for pages in tensors.values():
            pages.fill_(float("nan"))  # what was never written must never be read
    return made


def reading(**changes) -> tuple[ReadingConfig, StreamWords]:
    plain = {"virtual": True, "keep_logits": True, "task.entries": 4, "page_size": 4, "pace": 0.0}
    return update(ReadingConfig(), {**plain, **changes}), spoken(ledger)


def side_by_side(**changes) -> tuple[StreamsConfig, StreamWords]:
    plain = {"virtual": True, "keep_logits": True, "task.rows": 14, "page_size": 4}
    return update(StreamsConfig(), {**plain, **changes}), spoken(running_sum)
