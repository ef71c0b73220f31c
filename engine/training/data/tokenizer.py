"""Trains a byte-level byte-pair tokenizer and writes it as Hugging Face tokenizer files.

In come texts, out come `tokenizer.json` and `tokenizer_config.json`. Every byte has an entry, so
any UTF-8 text comes back unchanged (Sennrich et al. 2016; on bytes: GPT-2, 2019).
"""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from engine.core.writing import write_text

BOS, EOS = "<|bos|>", "<|eos|>"  # a file's beginning and end; entries 0 and 1


def train_tokenizer(texts: Iterable[str], entries: int) -> Tokenizer:
    """A tokenizer of `entries` entries (258 at least: two marks and the bytes) learnt from `texts`.

    It adds no marks by itself: a prompt is the middle of a file unless it starts with BOS.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=entries,
        special_tokens=[BOS, EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path, context: int) -> None:
    """Writes both files into `folder`; `context` is the longest sequence the model has seen."""
    write_text(folder / "tokenizer.json", tokenizer.to_str(pretty=True), "the tokenizer")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
    }
    text = json.dumps(config, indent=2) + "\n"
    write_text(folder / "tokenizer_config.json", text, "the tokenizer's config")
