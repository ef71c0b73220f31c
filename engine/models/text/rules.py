"""The rules of a tokenizer from outside, with what could hang or abort the process taken away.

Padding and truncation are dropped: we batch without either, and a padding to 10⁹ tokens ends the
process; so are merges left out by chance, which training alone wants. What multiplies a text, what
makes the library look at a text as often as it is long, and patterns that try exponentially many
ways are refused. Patterns that no public tokenizer is known by may still try many: `familiar` says
whether there are any, and a `Tokenizer` then lets an `Encoder` do it.
"""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer as Rules

from engine.core.errors import BadInput
from engine.core.limits import read_bytes
from engine.models.text.added import check_added
from engine.models.text.letters import is_table, longest_change
from engine.models.text.panics import check_merges, fatal

GROWTH = 16  # times that all rules before the model may lengthen a text; public ones stay under 4
CHANGED = 64  # bytes that characters may become by a table; NFKC makes one 33
PATTERN = 20_000  # characters of a pattern
WORD = 10_000  # characters of a word looked up whole; the library tries all its ends
PARTS = ("normalizer", "pre_tokenizer", "decoder")
BEFORE = PARTS[:2]  # the model: what they make of a text, it works on
RULES = 32  # of all parts; each reads the whole text
TEXT = 32_768  # characters of a text in the file: freeing a token of 200,000 ends the process
CHARACTERS = b'"precompiled_charsmap"'
TABLE = re.compile(CHARACTERS + rb'\s*:\s*("(?:[^"\\]|\\.)*"|[^\s,}\]]*)')
PIECE = 2048  # characters of a token; public ones stay under 600
SCORED = 256  # of a Unigram model's, whose every length it tries everywhere
AFFIX = 64  # characters that a model puts before or after each piece it looks up
ADDED = 1 << 20  # characters of all added tokens
AFFIXES = ("continuing_subword_prefix", "end_of_word_suffix")
NUMBERS = 1 << 24  # of tokens; public models have under 2^19
AROUND = 1000  # tokens put around a text
SEARCHED = 3  # characters of an added token that takes the spaces beside it: the library looks
# for them from the text's begin, at each such token
REPEATS = re.compile(r"[*+]|\{\d*,\}|\{\d{3,}(,\d*)?\}|\{\d*,\d{3,}\}")  # without a near end
ESCAPED = re.compile(r"\\[^\w]")  # a letter that stands for itself
RECALLS = re.compile(r"\\(?:[1-9]|k[<'{]|g[<'{])|\(\?(?:\(|~|&|R|P[>=])")  # what was matched before
ENGLISH = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
ENDS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
FAMILIAR = frozenset((  # where texts part, as public tokenizer.json files have it
    # gpt2, cl100k_base (Llama 3) and o200k_base of openai/tiktoken (tiktoken_ext/openai_public.py)
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    *(
        rf"{ENGLISH}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{ENDS}"
        for digits in ("", "{1,3}")  # Qwen2; Llama 3
    ),
    "|".join((
        rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]*[{LOWER}]+{ENGLISH}?",
        rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]+[{LOWER}]*{ENGLISH}?",
        r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", ENDS,
    )),
    # parts of DeepSeek's, Mistral's and BERT-like ones
    r"\p{N}{1,3}", r"\p{N}", "[\r\n]", r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"\s+$",
    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    " {2,}", "[0-9][0-9][0-9]", "\\d", "\\s", " ",
))  # fmt: skip


def read_rules(file: Path) -> Rules:
    """The rules in a `tokenizer.json`. Raises BadInput naming the file."""
    try:
        data = read_bytes(file, "tokenizer_bytes")
        if _longest(data) > TEXT:
            raise BadInput(f"{file}: holds a text of over {TEXT} characters; refused")
        if not all(_is_table(found[1]) for found in TABLE.finditer(data)):
            raise BadInput(f"{file}: its precompiled_charsmap is no table; restore it")
        check_merges(file, data)
        rules = Rules.from_buffer(data)
    except (KeyboardInterrupt, SystemExit, MemoryError, BadInput):
        raise
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror}); check the file") from None
    except BaseException as error:  # the library raises bare Exception, and panics beside it
        raise BadInput(f"{file}: not a tokenizer ({str(error)[:100]}); restore it") from None
    rules.no_padding()
    rules.no_truncation()
    if getattr(rules.model, "dropout", None):  # of training: one text, other tokens each time
        rules.model.dropout = None
    check_rules(file, rules)
    check_added(file, data, rules)
    return rules


def check_rules(file: Path, rules: Rules) -> None:
    """Raises BadInput for rules that may cost too much."""
    if (why := _dear(rules)) is not None:
        raise BadInput(f"{file}: {why}; refused")


def _longest(data: bytes) -> int:
    """Bytes of the longest text in JSON, what lies between two texts counted too; but for the
    table that tells a normalizer each letter's form."""
    letters = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    quotes = quotes[letters[quotes - 1] != ord("\\")]
    gaps = np.diff(quotes, prepend=0)
    table = CHARACTERS in data
    return max(
        (
            int(gaps[at])
            for at in np.flatnonzero(gaps > TEXT)
            if not table or CHARACTERS not in data[: quotes[at - 1]][-len(CHARACTERS) - 5 :]
        ),
        default=0,
    )


def _is_table(told: bytes) -> bool:
    """Whether this JSON is a normalizer's table: of others the library prints pages on stderr."""
    try:
        return is_table(base64.b64decode(json.loads(told), validate=True))
    except (ValueError, TypeError):
        return False


def _dear(rules: Rules) -> str | None:
    """What in the rules may cost too much."""
    count, growth = 0, 1.0
    for name in (*PARTS, "post_processor"):
        growth = growth if name in BEFORE else 1.0  # the decoder works on texts of its own
        for rule in _rules(_state(getattr(rules, name))):
            count += 1
            if name in PARTS and (pattern := _pattern(rule)) is not None:
                if tries_many_ways(pattern):
                    return f"{name} has a pattern that may try too many ways ({pattern[:40]!r})"
                if name not in BEFORE and len(REPEATS.findall(pattern)) > 1:
                    return f"{name} has a pattern with two repetitions ({pattern[:40]!r})"
            growth *= _growth(rule) if name in PARTS else 1.0
            if growth > GROWTH:
                return f"{name} makes a text over {GROWTH} times as long"
            if (why := fatal(rule)) is not None:
                return f"{name} {why}"
            if rule.get("type") == "FixedLength" and not rule.get("length"):
                return f"{name} cuts texts into pieces of no length"
            if name == "post_processor" and _around(rule) > AROUND:
                return f"post_processor puts over {AROUND} tokens, or unknown ones, around a text"
    if count > RULES:
        return f"{count} rules before and after the model, over {RULES}"
    return _dear_model(rules)


def _dear_model(rules: Rules) -> str | None:
    """What in the model and the added tokens may cost too much."""
    model = rules.model
    if getattr(model, "max_input_chars_per_word", 0) > WORD:
        return f"model looks up words of over {WORD} characters"
    if any(len(getattr(model, name, None) or "") > AFFIX for name in AFFIXES):
        return f"model looks up pieces with over {AFFIX} characters more"
    most = SCORED if type(model).__name__ == "Unigram" else PIECE
    held = rules.get_vocab(with_added_tokens=True)
    if len(set(held.values())) < len(held) and type(model).__name__ != "Unigram":
        return "two tokens of one number"
    if max(held.values(), default=0) >= NUMBERS:
        return f"a token of a number over {NUMBERS:,}"
    if any(len(token) > most for token in rules.get_vocab(with_added_tokens=False)):
        return f"model has a token of over {most} characters"
    added = rules.get_added_tokens_decoder().values()
    if sum(len(token.content) for token in added) > ADDED:
        return f"added tokens of over {ADDED:,} characters together"
    if any(len(token.content) > PIECE for token in added):
        return f"an added token of over {PIECE} characters"
    if any((t.lstrip or t.rstrip) and len(t.content.strip()) < SEARCHED for t in added):
        return f"an added token of under {SEARCHED} letters that takes the spaces beside it"
    return None


def familiar(rules: Rules) -> bool:
    """Whether its patterns are ones that public tokenizers have, or repeat nothing at all."""
    parts = [_state(getattr(rules, name)) for name in BEFORE]
    found = [_pattern(rule) for part in parts for rule in _rules(part)]
    return all(not p or p in FAMILIAR or not set(ESCAPED.sub("", p)) & set("*+?{") for p in found)


def _state(part: Any) -> Any:
    return {} if part is None else json.loads(part.__getstate__())


def _pattern(rule: dict[str, Any]) -> str | None:
    """A rule's regular expression."""
    told = rule.get("pattern")
    regex = told.get("Regex") if isinstance(told, dict) else None
    return regex if isinstance(regex, str) else None


def _growth(rule: dict[str, Any]) -> float:
    """How many times as long a rule may make a text."""
    kind, told = rule.get("type"), rule.get("pattern")
    if kind == "Replace":
        literal = told.get("String") if isinstance(told, dict) else None
        content = len(str(rule.get("content", "")))
        return max(1.0, content / len(literal)) if literal else 1.0 + content
    if kind == "Prepend":  # to each part between added tokens, of one character at least
        return 1.0 + len(str(rule.get("prepend", "")))
    if kind == "Precompiled":
        table = base64.b64decode(rule.get("precompiled_charsmap") or "")
        return 1.0 if longest_change(table) <= CHANGED else GROWTH + 1.0
    return 2.0 if kind == "ByteLevel" else 1.0  # a byte above 127 becomes a letter of two


def _around(rule: dict[str, Any]) -> int:
    """Tokens that a rule puts around a text; too many where it puts the text there again, or
    numbers that no model has."""
    if str(rule.get("type")) in ("BertProcessing", "RobertaProcessing"):
        ends = [rule[name][1] for name in ("sep", "cls")]
        return len(ends) if max(ends) < NUMBERS else AROUND + 1
    pieces, told = rule.get("single"), rule.get("special_tokens")
    if not isinstance(pieces, list) or not isinstance(told, dict):
        return 0
    names = [piece.get("SpecialToken", {}).get("id") for piece in pieces]
    if names.count(None) > 2:
        return AROUND + 1
    if not set(names) <= {None, *told}:  # the library prints a page on stderr and fails
        return AROUND + 1
    ids = [told[name].get("ids", []) for name in names if name is not None]
    known = all(max(each, default=0) < NUMBERS for each in ids)
    return sum(map(len, ids)) if known else AROUND + 1


def _rules(state: Any) -> Iterator[dict[str, Any]]:
    """Every rule in a part, those inside sequences too."""
    if isinstance(state, dict):
        if "type" in state:
            yield state
        for value in state.values():
            if isinstance(value, list | dict):
                yield from _rules(value)
    elif isinstance(state, list):
        for value in state:
            yield from _rules(value)


def tries_many_ways(pattern: str) -> bool:
    """Whether a repeated group holds a repetition or a choice, or what was matched comes again:
    exponentially many ways to match, or steps that the library does not count.

    Errs on the side of yes; no public tokenizer's pattern is one.
    """
    if len(pattern) > PATTERN or RECALLS.search(pattern):
        return True
    groups: list[bool] = []  # for each open group: whether it holds a repetition or a choice
    at, inside_class = 0, False
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\":
            at += 2
            continue
        if inside_class:
            inside_class = letter != "]"
        elif letter == "[":
            inside_class = True
            at += pattern[at + 1 : at + 2] == "^"
            at += pattern[at + 1 : at + 2] == "]"
        elif letter == "(":
            groups.append(False)
        elif letter == "|" and groups:
            groups[-1] = True
        elif letter == ")" and groups:
            held = groups.pop()
            repeated = REPEATS.match(pattern, at + 1) is not None
            if repeated and held:
                return True
            if groups:
                groups[-1] |= held or repeated
        elif groups and REPEATS.match(pattern, at):
            groups[-1] = True
        at += 1
    return False
