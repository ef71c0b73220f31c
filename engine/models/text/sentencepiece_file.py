"""Tokenizer rules of a SentencePiece model file (`tokenizer.model`), where no `tokenizer.json` is.

The file is a protobuf message, sentencepiece_model.proto of github.com/google/sentencepiece; the
few fields that rules are made of are read from its wire format, each within its bounds. The rules
are the `tokenizers` library's, as for every other folder: streams, grammars and limits stay theirs.
"""

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, decoders, models, normalizers
from tokenizers import Tokenizer as Rules
from tokenizers.processors import TemplateProcessing

from engine.core.errors import BadInput
from engine.core.limits import read_bytes
from engine.models.gguf.pieces import BLANK, BYTE, SPLITS, UNKNOWN, Pieces
from engine.models.text.letters import is_table, longest_change
from engine.models.text.rules import CHANGED

UNIGRAM, BPE = 1, 2  # kinds of models; there are words and characters, too
NORMAL, CONTROL, OWN, UNUSED = 1, 3, 4, 5  # kinds of pieces
MOST = 270_000  # pieces, some 5 µs of each; public models have 262,144
FIELDS = MOST + 1000  # of a message
PIECES, TRAINER, NORMALIZER = 1, 2, 3  # fields of the message
TYPE, SUFFIX, BYTES, IDS = 3, 24, 35, {"unk": 40, "bos": 41, "eos": 42}  # of its trainer
TABLE, PREFIX, SQUEEZED, ESCAPED = 2, 3, 4, 5  # of its normalizer

Value = int | bytes


def read_model(file: Path, settings: dict[str, Any]) -> tuple[Rules, dict[str, str]]:
    """The rules in a file, and the texts of `bos_token` and `eos_token`, where it has any.

    `settings`: of tokenizer_config.json, which may add tokens and say what is put around a text.
    Raises BadInput naming the file.
    """
    try:
        data = read_bytes(file, "tokenizer_bytes")
        made = _Model(data)
        rules = made.rules()
        _add(rules, made, settings)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except OSError as fault:
        raise BadInput(f"{file}: cannot be read ({fault.strerror}); check the file") from None
    except BadInput as fault:
        raise BadInput(f"{file}: {fault}") from None
    except BaseException as fault:  # the library raises bare Exception, and panics beside it
        why = " ".join(str(fault).split())[:80]
        raise BadInput(f"{file}: not a SentencePiece model ({why}); restore it") from None
    named = {f"{name}_token": made.named(name) for name in ("bos", "eos")}
    return rules, {name: text for name, text in named.items() if text is not None}


class _Model:
    """What a message says."""

    def __init__(self, data: bytes) -> None:
        texts, scores, kinds, held = [], [], [], {TRAINER: b"", NORMALIZER: b""}
        for field, value in _fields(data):
            if field == PIECES:
                piece = dict(_fields(_bytes(value)))
                texts.append(_bytes(piece.get(1, b"")).decode("utf-8"))
                scores.append(_float(piece.get(2, bytes(4))))
                kinds.append(_int(piece.get(3, NORMAL)))
                if len(texts) > MOST:
                    raise BadInput(f"over {MOST:,} pieces; refused")
            elif field in held:
                held[field] = _bytes(value)
        self.trained = dict(_fields(held[TRAINER]))
        self.normal = dict(_fields(held[NORMALIZER]))
        if not texts or len(set(texts)) < len(texts) or not all(map(math.isfinite, scores)):
            raise BadInput("no pieces, or pieces twice or without scores; restore it")
        self.pieces = Pieces(texts, scores, kinds, bool(_int(self.normal.get(PREFIX, 1))))

    def named(self, name: str) -> str | None:
        """The piece that opens or ends a text."""
        default = {"unk": 0, "bos": 1, "eos": 2}[name]
        at = _int(self.trained.get(IDS[name], default))
        return self.pieces.texts[at] if 0 <= at < len(self.pieces.texts) else None

    def rules(self) -> Rules:
        kind, pieces = _int(self.trained.get(TYPE, UNIGRAM)), self.pieces
        if kind not in (UNIGRAM, BPE):
            raise BadInput("a model of words or characters; of pieces (bpe, unigram) it is read")
        if _int(self.trained.get(SUFFIX, 0)) or not _int(self.normal.get(ESCAPED, 1)):
            raise BadInput("blanks behind words, or as they are; only blanks before words are read")
        if pieces.cost > SPLITS or any(len(text) > 2048 for text in pieces.texts):
            raise BadInput("pieces too long; refused")
        rules = pieces.rules() if kind == BPE else self._unigram()
        table = _table(self.normal.get(TABLE, b""))
        blanks: list[Any] = [normalizers.Precompiled(table)] if table else []
        if _int(self.normal.get(SQUEEZED, 1)):
            blanks += [normalizers.Replace(Regex(" {2,}"), " ")]
            blanks += [normalizers.Replace(Regex(r"\A | \z"), "")]
        blanks += [normalizers.Prepend(BLANK)] if pieces.prefix else []
        rules.normalizer = normalizers.Sequence([*blanks, normalizers.Replace(" ", BLANK)])
        return rules

    def _unigram(self) -> Rules:
        """Pieces that no text spells (bytes, control) are worth less than any way to spell it."""
        pieces, kinds = self.pieces, self.pieces.kinds
        low = 10 * min((s for s, k in zip(pieces.scores, kinds, strict=True) if k == NORMAL),
                       default=0.0) - 100  # fmt: skip
        most = max(pieces.scores)
        scored = [
            (text, score if kind == NORMAL else len(text) * most - 0.1 if kind == OWN else low)
            for text, score, kind in zip(pieces.texts, pieces.scores, kinds, strict=True)
        ]
        unknown = kinds.index(UNKNOWN) if UNKNOWN in kinds else None
        rules = Rules(models.Unigram(scored, unknown, BYTE in kinds))
        first: list[Any] = [decoders.Strip(content=" ", left=1)] if pieces.prefix else []
        rules.decoder = decoders.Sequence(
            [decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse(), *first]
        )
        return rules


def _add(rules: Rules, made: _Model, settings: dict[str, Any]) -> None:
    """Tokens that are never parted, the settings' own behind the pieces, and what is put around."""
    texts, kinds = made.pieces.texts, made.pieces.kinds
    for kind, special in ((CONTROL, True), (UNKNOWN, True), (OWN, False)):
        own = [text for text, its in zip(texts, kinds, strict=True) if its == kind]
        own = [text for text in own if kind != OWN or not set(text) & {" ", BLANK}]
        rules.add_tokens([AddedToken(t, special=special, normalized=False) for t in own])
    told = settings.get("added_tokens_decoder")
    more = sorted((told if isinstance(told, dict) else {}).items(), key=lambda item: int(item[0]))
    for number, token in more:
        if not isinstance(token, dict) or not isinstance(token.get("content"), str):
            raise BadInput("tokenizer_config.json: added_tokens_decoder has a token without text")
        sides = {side: token.get(side) is True for side in ("lstrip", "rstrip", "single_word")}
        special, content = token.get("special") is True, token["content"]
        rules.add_tokens([AddedToken(content, special=special, normalized=False, **sides)])
        if rules.token_to_id(content) != int(number):
            raise BadInput(f"tokenizer_config.json: {content[:40]!r} is no token {int(number)}")
    ends = {name: made.named(name) for name in ("bos", "eos")}
    asked = {name: settings.get(f"add_{name}_token", name == "bos") is True for name in ends}
    around = [name for name in ends if asked[name] and ends[name] is not None]
    if around:
        single = ["bos"] * ("bos" in around) + ["$A"] + ["eos"] * ("eos" in around)
        numbers = [(name, rules.token_to_id(ends[name] or "")) for name in around]
        rules.post_processor = TemplateProcessing(single=single, special_tokens=numbers)


def _table(value: Value) -> bytes:
    """The normalizer's table: a trie's bytes behind their number, then texts that end in NUL."""
    data = _bytes(value)
    if not data:
        return data
    if not is_table(data) or not data.endswith(b"\0"):
        raise BadInput("its table of characters is damaged; restore it")
    if longest_change(data) > CHANGED:
        raise BadInput(f"a character becomes over {CHANGED} bytes; refused")
    return data


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Number and value of each field of a message. Raises BadInput where it is none."""
    at = count = 0
    while at < len(data):
        if (count := count + 1) > FIELDS:
            raise BadInput(f"over {FIELDS:,} fields; refused")
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}.get(kind, len(data) + 1), at)
        if size > len(data) - at:
            raise BadInput("not a SentencePiece model, or cut off; restore it")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    if at < len(data) and data[at] < 128:  # almost always
        return data[at], at + 1
    value = 0
    for place in range(10):
        if at + place >= len(data):
            break
        value |= (data[at + place] & 127) << 7 * place
        if data[at + place] < 128:
            return value, at + place + 1
    raise BadInput("not a SentencePiece model, or cut off; restore it")


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise BadInput("a number where a text belongs; restore it")
    return value


def _int(value: Value) -> int:
    """A number; negative ones are written as if they had 64 bits."""
    if not isinstance(value, int):
        raise BadInput("a text where a number belongs; restore it")
    return value - (1 << 64) if value >= 1 << 63 else value


def _float(value: Value) -> float:
    if not isinstance(value, bytes) or len(value) != 4:
        raise BadInput("a score that is no number; restore it")
    return float(struct.unpack("<f", value)[0])
