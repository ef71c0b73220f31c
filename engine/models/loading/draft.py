"""Draft model by name: one whose tokens and context are those of the target it drafts for."""

from engine.core.errors import BadInput
from engine.models.loading.find import Found, find
from engine.models.text.tokenizer import Tokenizer, has_tokenizer


def find_draft(name: str, target: Found) -> Found:
    """The model `name`. Raises BadInput where it cannot draft for `target`."""
    found = find(name)
    what = f"draft model {found.name!r}"
    own, theirs = found.config.vocab, target.config.vocab
    if own != theirs:
        raise BadInput(
            f"{what}: its vocabulary has {own:,} tokens, that of {target.name} {theirs:,}; "
            "a draft must have the target's own"
        )
    held = [one.folder for one in (found, target) if one.folder is not None]
    if len(held) == 2 and all(has_tokenizer(each) for each in held):
        words, others = (Tokenizer(each).rules.get_vocab(True) for each in held)
        if words != others:
            raise BadInput(
                f"{what}: its vocabulary has other words than that of {target.name}; "
                "a draft must have the target's own"
            )
    if any(found.config.recurrent):
        raise BadInput(
            f"{what}: keeps a recurrent state, which drafts that are refused would have changed; "
            "choose a draft that attends alone"
        )
    if found.config.max_positions < target.config.max_positions:
        raise BadInput(
            f"{what}: takes {found.config.max_positions:,} tokens, {target.name} "
            f"{target.config.max_positions:,}; choose a draft that takes as many"
        )
    return found
