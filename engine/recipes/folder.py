"""Writes a trained language model as a Hugging Face folder and measures what it wrote.

Weights go down in float16; every figure in `recipe.json` and the card is of the file read back.
"""

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from engine.core.config import to_dict
from engine.core.writing import json_text, write_text
from engine.models.config import ModelConfig
from engine.models.families import read_config
from engine.models.loading.checkpoint import Checkpoint
from engine.models.loading.load import save
from engine.recipes.card import card
from engine.recipes.recipe import Recipe
from engine.recipes.teacher_text import continuations
from engine.training.data.corpus import Corpus, Source
from engine.training.data.tokenizer import save_tokenizer
from engine.training.losses.evaluate import agreement, greedy, score

SLICE = 48_000  # characters of held-out text that travel with a model
HELD_TEXTS = 64  # of a teacher, that begin as held-out text does
LAST = "tokenizer_config.json"  # of what `write_model` writes
PROMPTS = ("def parse_args(", "class Queue:\n    def __init__(self", "    try:\n        import ")


@dataclass(frozen=True, slots=True)
class Trained:
    """What training leaves: weights and all that is needed to judge and to explain them."""

    recipe: Recipe
    config: ModelConfig
    weights: dict[str, Tensor]
    tokenizer: Tokenizer
    corpus: Corpus
    tokens: int  # in the training stream
    validation: np.ndarray


def write_folder(folder: Path, trained: Trained) -> None:
    """Weights, configs, tokenizer, `recipe.json`, card; held-out text where there is a draft."""
    recipe = trained.recipe
    write_model(folder, trained.config, trained.weights, trained.tokenizer)
    if recipe.draft:
        (folder / "validation.txt").write_bytes(held_out_text(trained.corpus).encode())
    facts = _facts(folder, trained)
    write_json(folder / "recipe.json", facts)
    (folder / "README.md").write_text(card(facts), encoding="utf-8")


def write_model(
    folder: Path, config: ModelConfig, weights: dict[str, Tensor], tokenizer: Tokenizer
) -> None:
    """What engines load: weights in float16, configs, tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    save(folder, config, {name: weight.half() for name, weight in weights.items()})
    generation = {"bos_token_id": 0, "eos_token_id": 1, "do_sample": False}
    write_json(folder / "generation_config.json", generation)
    save_tokenizer(tokenizer, folder, config.max_positions)


def whole(folder: Path) -> bool:
    """Whether `write_model` came to its end there."""
    return (folder / LAST).exists()


def held_out_text(corpus: Corpus) -> str:
    """The beginning of the held-out files put one after the other."""
    return "".join(source.text for source in corpus.validation)[:SLICE]


def saved_weights(folder: Path) -> tuple[ModelConfig, dict[str, Tensor]]:
    """A folder's config and its weights in float32, as `dense` takes them."""
    config = read_config(folder)
    stored = Checkpoint(folder, config)
    return config, {name: tensor.float() for name, tensor in stored.items()}


def slice_stream(tokenizer: Tokenizer, text: str) -> np.ndarray:
    """uint16 ids of held-out text, without marks."""
    return np.array(tokenizer.encode(text).ids, np.uint16)


def _facts(folder: Path, trained: Trained) -> dict[str, Any]:
    recipe, corpus = trained.recipe, trained.corpus
    config, weights = saved_weights(folder)
    length = config.max_positions
    held = score(config, weights, trained.validation, length)
    text = slice_stream(trained.tokenizer, held_out_text(corpus))
    prompts = {prompt: trained.tokenizer.encode(prompt).ids for prompt in PROMPTS}
    facts = {
        "name": recipe.name,
        "about": recipe.about,
        "command": f"workbench train {recipe.name}",
        "parameters": sum(weight.numel() for weight in weights.values()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "corpus": {
            "digest": corpus.digest,
            "training": _sizes(corpus.training, trained.tokens),
            "validation": _sizes(corpus.validation, len(trained.validation)),
        },
        "seed": recipe.training.seed,
        "steps": recipe.training.steps,
        "rate": recipe.training.rate,
        "tokens_seen": recipe.training.tokens_seen(),
        "validation_loss": held.loss,
        "bits_per_byte": held.bits_per_byte(_bytes(corpus.validation)),
        "validation_window": length,
        "slice_loss": score(config, weights, text, length).loss,
        "samples": {
            prompt: trained.tokenizer.decode(greedy(config, weights, ids, recipe.completion))
            for prompt, ids in prompts.items()
        },
        "recipe": to_dict(recipe),
    }
    if recipe.teacher:
        teacher = saved_weights(folder.parent / recipe.teacher)
        draft = saved_weights(folder.parent / recipe.draft)
        own = continuations(
            folder.parent / recipe.teacher, trained.validation, HELD_TEXTS, recipe.training
        )
        for name, stream in (("", trained.validation), ("own_text_", own)):
            for who, model in (("greedy", (config, weights)), ("draft", draft)):
                facts[f"{name}{who}_agreement"] = agreement(model, teacher, stream, length)
    elif recipe.draft:
        draft = saved_weights(folder.parent / recipe.draft)
        drafted = agreement(draft, (config, weights), trained.validation, length)
        facts |= {"draft": recipe.draft, "greedy_agreement": drafted}
        if recipe.only:
            facts["draft_loss"] = score(*draft, trained.validation, length).loss
    return facts


def _sizes(sources: tuple[Source, ...], tokens: int) -> dict[str, int]:
    return {"files": len(sources), "bytes": _bytes(sources), "tokens": tokens}


def _bytes(sources: tuple[Source, ...]) -> int:
    return sum(len(source.text.encode()) for source in sources)


def write_json(path: Path, facts: dict[str, Any]) -> None:
    """Readable JSON with a line's end."""
    text = json_text(facts, indent=2, ensure_ascii=False) + "\n"
    write_text(path, text, "a model's facts")
