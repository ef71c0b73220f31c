"""Tokenizer rules from a GGUF file's metadata: byte-level BPE of the kinds llama.cpp names, and
sentencepiece vocabularies with scores."""

import math
from typing import Any

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Rules
from tokenizers.processors import TemplateProcessing

from engine.core.errors import BadInput
from engine.models.gguf.header import Header
from engine.models.gguf.pieces import SPLITS, Pieces

CONTROL, OWN = 3, 4  # kinds of tokens: control, and the maker's own
# Where words part before they are merged: as the models' own tokenizer.json files say.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DIGITS = {"llama-bpe": "{1,3}", "llama3": "{1,3}", "qwen2": ""}
PLAIN = ("gpt-2", "default")
PREFIX = "tokenizer.ggml."


def has_rules(header: Header) -> bool:
    """Whether the file says anything of its tokenizer."""
    return header.metadata.get(f"{PREFIX}model", "no_vocab") not in ("no_vocab", "none")


def rules_of(header: Header) -> Rules:
    """The rules. Raises BadInput that says in one line what is missing."""
    held = {k.removeprefix(PREFIX): v for k, v in header.metadata.items() if k.startswith(PREFIX)}
    kind, pre = held.get("model"), held.get("pre", "default")
    if kind == "llama":
        return _scored(header, held)
    if kind != "gpt2" or pre not in (*PLAIN, *DIGITS):
        raise BadInput(
            f"{header.path}: tokenizer {str(kind)[:40]!r} with words of {str(pre)[:40]!r} is not "
            f"read; llama's pieces and byte-level BPE of {', '.join((*PLAIN, *DIGITS))} are: put "
            "the model's tokenizer.json beside the file"
        )
    tokens, merges = _texts(header, held, "tokens"), _texts(header, held, "merges")
    pairs = [(first, second) for first, _, second in (merge.partition(" ") for merge in merges)]
    try:
        model = models.BPE(
            vocab={token: number for number, token in enumerate(tokens)}, merges=pairs,
            ignore_merges=pre.startswith("llama"),
        )  # fmt: skip
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as fault:  # the library raises bare Exception
        raise BadInput(f"{header.path}: its merges do not fit ({str(fault)[:80]})") from None
    rules = Rules(model)
    if pre == "qwen2":
        rules.normalizer = normalizers.NFC()
    rules.pre_tokenizer = _words(pre)
    rules.decoder = decoders.ByteLevel()
    _add_special(header, held, tokens, rules)
    return rules


def _scored(header: Header, held: dict[str, Any]) -> Rules:
    """Rules of a sentencepiece vocabulary, whose merges follow from its scores."""
    texts, scores = _texts(header, held, "tokens"), held.get("scores")
    numbers = isinstance(scores, list) and all(type(each) is float for each in scores)
    if not numbers or len(scores) != len(texts):  # type: ignore[arg-type]
        raise BadInput(f"{header.path}: {PREFIX}scores does not fit its {len(texts)} tokens")
    kinds = _kinds(header, held, texts) or [0] * len(texts)
    pieces = Pieces(texts, scores, kinds, held.get("add_space_prefix") is not False)  # type: ignore[arg-type]
    if pieces.cost > SPLITS or not all(map(math.isfinite, pieces.scores)):
        raise BadInput(f"{header.path}: {PREFIX}tokens are too long, or have no scores; refused")
    held.setdefault("add_bos_token", True)
    rules = pieces.rules()
    _add_special(header, held, texts, rules)
    return rules


def _words(pre: str) -> Any:
    if pre in PLAIN:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    split = pre_tokenizers.Split(Regex(WORDS.replace("DIGITS", DIGITS[pre])), "isolated")
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([split, plain])


def _texts(header: Header, held: dict[str, Any], name: str) -> list[str]:
    found = held.get(name)
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise BadInput(
            f"{header.path}: {PREFIX}{name} is missing; put the model's tokenizer.json beside it"
        )
    return found


def _kinds(header: Header, held: dict[str, Any], tokens: list[str]) -> list[int]:
    """The tokens' kinds; empty where the file says none."""
    kinds = held.get("token_type", [])
    if not isinstance(kinds, list) or len(kinds) not in (0, len(tokens)):
        raise BadInput(f"{header.path}: {PREFIX}token_type does not fit its {len(tokens)} tokens")
    return kinds


def _add_special(header: Header, held: dict[str, Any], tokens: list[str], rules: Rules) -> None:
    kinds = _kinds(header, held, tokens)
    for kind, special in ((CONTROL, True), (OWN, False)):
        named = [text for text, own in zip(tokens, kinds, strict=False) if own == kind]
        rules.add_tokens([AddedToken(text, special=special, normalized=False) for text in named])
    first = held.get("bos_token_id")
    if held.get("add_bos_token") and type(first) is int and 0 <= first < len(tokens):
        name = tokens[first]
        rules.post_processor = TemplateProcessing(
            single=f"{_quoted(name)} $A", special_tokens=[(_quoted(name), first)]
        )


def _quoted(name: str) -> str:
    """A token's name as a template takes it: without blanks, which part its words."""
    return name.replace(" ", "_")
