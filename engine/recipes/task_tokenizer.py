"""A tokenizer for tasks: a token for each character, each word of the tasks and, if asked, numbers.

In come the tasks' words and any special tokens a recipe adds (spawn, join, path marks); out comes a
word-level tokenizer in Hugging Face's form that gives every text over its characters back.
"""

import re
from collections.abc import Sequence

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from engine.training.data.tokenizer import BOS, EOS

UNKNOWN = "<|unk|>"
# Printable ASCII and the line's end.
CHARACTERS = ("\n", *map(chr, range(32, 127)))


def task_tokenizer(
    words: Sequence[str] = (), *, numbers: int = 0, special: Sequence[str] = ()
) -> Tokenizer:
    """Entries: BOS, EOS, unknown, `special`, characters, `words`, then whole numbers to `numbers`.

    Numbers of two digits and more up to `numbers` are one token each, larger ones digit by digit;
    0 writes all of them digit by digit. `special` are matched before anything else and hidden when
    decoding unless asked for, so a recipe may use any text.
    """
    whole = [str(number) for number in range(10, numbers + 1)]
    entries = [BOS, EOS, UNKNOWN, *special, *CHARACTERS, *words, *whole]
    ids = {entry: place for place, entry in enumerate(dict.fromkeys(entries))}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    # A word inside a longer one must not win, so longer ones stand first.
    parts = [re.escape(word) for word in sorted(words, key=len, reverse=True)]
    parts += [rf"(?<!\d){_up_to(numbers)}(?!\d)"] if whole else []
    pattern = Regex("|".join([*parts, r"[\s\S]"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(pattern, "isolated")
    tokenizer.decoder = decoders.Fuse()
    marks = [BOS, EOS, UNKNOWN, *special]
    tokenizer.add_special_tokens([AddedToken(mark, normalized=False) for mark in marks])
    return tokenizer


def _up_to(numbers: int) -> str:
    """A pattern of the whole numbers from 10 to `numbers`, without leading zeros."""
    return "(?:" + "|".join(str(n) for n in range(numbers, 9, -1)) + ")"
