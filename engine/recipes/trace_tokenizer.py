"""A tokenizer whose tokens are the words of traces, as Hugging Face files have it."""

from collections.abc import Sequence

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from engine.training.data.tokenizer import BOS, EOS


def trace_tokenizer(words: Sequence[str]) -> Tokenizer:
    """One token for each of `words`, in their order, spaces between; EOS is left out of texts.

    Any other word reads as BOS, which no trace has.
    """
    tokenizer = Tokenizer(
        models.WordLevel({word: place for place, word in enumerate(words)}, unk_token=BOS)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([AddedToken(EOS, normalized=False)])
    return tokenizer
