"""Text to token ids and back, from a folder's `tokenizer.json`; streams keep characters whole."""

import weakref
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.limits import inside, read_bytes
from engine.models.families.fields import Fields, read_json
from engine.models.gguf.header import read_header
from engine.models.gguf.rules import PREFIX, has_rules, rules_of
from engine.models.text.encoder import Encoder
from engine.models.text.rules import check_rules, familiar, read_rules
from engine.models.text.sentencepiece_file import read_model

JSON, PIECES = "tokenizer.json", "tokenizer.model"  # the second where the first is not
LONG = 512  # characters, or tokens, from which the work is done beside other Python threads
HELD_BACK = 3  # a UTF-8 character has at most three bytes before its last
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def has_tokenizer(path: Path | None) -> bool:
    """Whether a model folder or a GGUF file says how text becomes tokens."""
    if path is None:
        return False
    if path.suffix == ".gguf":
        return has_tokenizer(path.parent) or has_rules(read_header(path))
    return any((path / name).is_file() for name in (JSON, PIECES))


class Tokenizer:
    """The rules of a Hugging Face model folder (or of a `tokenizer.json`, or a GGUF file).

    `bos` and `eos`: token ids that open a text and that end an answer, gathered from
    generation_config.json, config.json and tokenizer_config.json, whichever there are.
    """

    def __init__(self, path: str | Path) -> None:
        folder = Path(path)
        if folder.suffix == ".gguf":
            self._read_gguf(folder)
            return
        file = folder / JSON if folder.is_dir() else folder
        if folder.is_dir() and not file.exists() and (folder / PIECES).exists():
            file = folder / PIECES
        self.folder = file.parent
        if not file.exists():
            raise BadInput(f"{file}: no such file; give a folder with a {JSON} or a {PIECES}")
        settings, place = _optional(self.folder / "tokenizer_config.json"), file.name
        if place == PIECES:
            self.rules, named = read_model(inside(self.folder, place), settings.raw)
            check_rules(file, self.rules)
            settings = Fields(named | settings.raw, settings.where)
        else:
            self.rules = read_rules(inside(self.folder, place))
        configs = [_optional(self.folder / n) for n in ("generation_config.json", "config.json")]
        self._gather(settings, configs)

    def _read_gguf(self, file: Path) -> None:
        """The rules in a GGUF file, or those that lie beside it as a `tokenizer.json`."""
        self.folder = file.parent
        header, beside = read_header(file), self.folder / "tokenizer.json"
        self.rules = read_rules(beside) if beside.is_file() else rules_of(header)
        names = "bos_token", "eos_token"
        ids = {name: header.metadata.get(f"{PREFIX}{name}_id") for name in names}
        held: dict[str, Any] = {"chat_template": header.metadata.get("tokenizer.chat_template")}
        held |= {n: self.rules.id_to_token(i) for n, i in ids.items() if type(i) is int and i >= 0}
        self._gather(Fields(held, str(file)), [])

    def _gather(self, settings: Fields, configs: list[Fields]) -> None:
        """Special tokens and the chat template, by what the settings say."""
        self.bos = self._special("bos_token", settings, configs)[:1]
        self.eos = self._special("eos_token", settings, configs)
        self.template = _template(settings, self.folder)
        self.special_texts = {
            name: text
            for name in ("bos_token", "eos_token", "unk_token", "pad_token")
            if (text := _text(settings.raw.get(name))) is not None
        }

    @property
    def vocab(self) -> int:
        """Token ids there are, added ones included."""
        return self.rules.get_vocab_size(with_added_tokens=True)

    @cached_property
    def longest(self) -> int:
        """Characters (or bytes, where tokens are of bytes) of the longest token."""
        return max(map(len, self.rules.get_vocab(with_added_tokens=True)), default=1)

    def encode(self, text: str, special: bool = True) -> list[int]:
        """Token ids; `special` adds what the folder says belongs around a text (such as bos).

        By patterns that no public tokenizer is known by in a process of its own: raises BadInput
        where that takes more than it may.
        """
        if not self.familiar:
            return self._encoder.encode(text, special)
        if len(text) < LONG:
            return list(self._asked(self.rules.encode, text, add_special_tokens=special).ids)
        # The library lets go of Python's lock in a batch, and only there: whoever else is served
        # would wait as long as a long text takes.
        (found,) = self._asked(self.rules.encode_batch, [text], add_special_tokens=special)
        return list(found.ids)

    def encode_all(self, texts: list[str]) -> list[list[int]]:
        """Of each its token ids, with nothing around it."""
        if not self.familiar:
            return [self._encoder.encode(text, special=False) for text in texts]
        found = self._asked(self.rules.encode_batch, texts, add_special_tokens=False)
        return [each.ids for each in found]

    @cached_property
    def familiar(self) -> bool:
        """Whether public tokenizers have its patterns: it encodes here, not in another process."""
        return familiar(self.rules)

    @cached_property
    def _encoder(self) -> Encoder:
        made = Encoder(self.rules)
        weakref.finalize(self, made.close)
        return made

    def close(self) -> None:
        """End the processes that work by unfamiliar patterns, where there are any."""
        if "_encoder" in self.__dict__:
            self._encoder.close()

    def decode(self, ids: list[int], special: bool = False) -> str:
        """Text; `special` keeps special tokens visible."""
        how = {"skip_special_tokens": not special}
        if len(ids) < LONG:
            return str(self._asked(self.rules.decode, ids, **how))
        return str(self._asked(self.rules.decode_batch, [ids], **how)[0])  # as `encode` does

    def _asked(self, call: Callable[..., Any], what: Any, **how: Any) -> Any:
        """The library's answer. Raises BadInput where its rules cannot work on `what`."""
        try:
            return call(what, **how)
        except (KeyboardInterrupt, SystemExit):
            raise
        except TypeError:
            if not any(map(_halved, [what] if isinstance(what, str) else what)):
                raise
            raise BadInput("a text with half a character (a lone surrogate) in it") from None
        except BaseException as fault:  # it raises bare Exception, and panics, which are not even
            why = " ".join(str(fault).split())[:100]
            raise BadInput(f"{self.folder}: its tokenizer fails ({why}); restore it") from None

    def stream(self) -> "Stream":
        """A fresh decoder for one growing answer."""
        return Stream(self)

    def _special(self, name: str, settings: Fields, configs: list[Fields]) -> tuple[int, ...]:
        """Ids under `name` in the settings (as text) and under `name_id` in the configs."""
        found: list[int] = []
        for fields in configs:
            found += fields.tokens(f"{name}_id")
        text = _text(settings.raw.get(name))
        known = self.rules.token_to_id(text) if text is not None else None
        found += [] if known is None else [known]
        return tuple(dict.fromkeys(found))


class Stream:
    """Text of a growing list of tokens, piece by piece; the pieces joined are the whole text.

    A piece never ends inside a character: bytes that may yet become one are held back.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.ids: list[int] = []  # the window still being decoded
        self.settled = 0  # tokens of the window known to end between characters
        self.told = 0  # characters of the window's text already given out

    def push(self, token: int) -> str:
        """The text this token completes; empty while a character is unfinished."""
        self.ids.append(token)
        text = self.tokenizer.decode(self.ids)
        whole = text.rstrip(UNKNOWN)
        if len(self.ids) - self.settled > HELD_BACK and len(text) - len(whole) > HELD_BACK:
            whole = text[: len(text) - HELD_BACK]
        piece, self.told = whole[self.told :], max(self.told, len(whole))
        if whole == text:
            self._slide()
        return piece

    def flush(self) -> str:
        """What was held back, once no token follows."""
        text = self.tokenizer.decode(self.ids)
        piece, self.told = text[self.told :], max(self.told, len(text))
        return piece

    def _slide(self) -> None:
        """Forget tokens before the last settled place; a decoder needs only some before it."""
        if self.settled:
            del self.ids[: self.settled]
            self.told = len(self.tokenizer.decode(self.ids))
        self.settled = len(self.ids)


def _optional(path: Path) -> Fields:
    return Fields(read_json(path) if path.exists() else {}, str(path))


def _halved(text: Any) -> bool:
    """Whether half a pair of UTF-16 is in it, as bytes that are no UTF-8 come from a shell."""
    return isinstance(text, str) and any("\ud800" <= letter <= "\udfff" for letter in text)


def _text(value: Any) -> str | None:
    """A special token as Hugging Face writes it: a string, or an object with its content."""
    value = value.get("content") if isinstance(value, dict) else value
    return value if isinstance(value, str) and not _halved(value) else None


def _template(settings: Fields, folder: Path) -> str | None:
    """The chat template: in tokenizer_config.json, or in a file of its own beside it."""
    own = folder / "chat_template.jinja"
    if own.exists() or own.is_symlink():
        try:
            return read_bytes(inside(folder, own.name), "template_bytes").decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(
                f"{own}: not readable as UTF-8 ({str(error)[:80]}); restore it"
            ) from None
    held = settings.raw.get("chat_template")
    if isinstance(held, list):  # several, each with a name
        named = [t for t in held if isinstance(t, dict) and t.get("name") == "default"]
        held = named[-1].get("template") if named else None
    return held if isinstance(held, str) else None
