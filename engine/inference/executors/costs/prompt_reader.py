"""A tokenizer for prompts of modelled runs, whose answers have no text."""

from pathlib import Path

from engine.inference.executors.settings import Settings
from engine.models.text.tokenizer import Tokenizer, has_tokenizer


class Reader:
    """A tokenizer that reads prompts but gives modelled tokens no text, for they mean nothing."""

    def __init__(self, folder: Path) -> None:
        self.inside = Tokenizer(folder)

    def encode(self, text: str) -> list[int]:
        """Token numbers of a text."""
        return self.inside.encode(text)

    def decode(self, tokens: list[int]) -> str:
        """A dot for each token."""
        return "·" * len(tokens)


def prompt_reader(config: Settings, folder: Path | None) -> Reader | None:
    """The model's tokenizer, loaded only for a workload that needs it."""
    if not config.workload.speaks or folder is None:
        return None
    return Reader(folder) if has_tokenizer(folder) else None
