"""Chat templates: messages to the text a model was trained to see.

A template is a program out of a downloaded folder. It runs in Jinja's immutable sandbox, and every
loop, call and growing value draws on a budget, so none escapes, hangs or fills the memory.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from jinja2 import TemplateError, Undefined, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from engine.core.errors import BadInput
from engine.core.limits import check, over

LARGEST_TEXT = 1 << 22  # characters of anything a template makes
LARGEST_NUMBER = 1 << 64
STEPS = 200_000  # of one rendering: a loop's round is one, a call is CALL and more for long texts
CALL = 5
CHARACTERS = 500  # of a text handled, for one step
FILTERS = (
    "abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items",
    "join", "last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr",
    "replace", "reverse", "round", "safe", "select", "selectattr", "sort", "string", "sum",
    "title", "trim", "unique", "upper",
)  # fmt: skip
TEXTS = frozenset(("do_capitalize", "do_lower", "soft_str", "do_title", "do_trim", "do_upper"))
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")  # where something lies in memory
EXPECTED = {"tools": None, "documents": None, "add_generation_prompt": False}
WIDE_METHODS = {"center", "ljust", "rjust", "zfill", "expandtabs", "format", "format_map",
                "encode", "translate"}  # fmt: skip


class Stopped(TemplateError):
    """A template asked for more than it may have."""


class Template:
    """A template made ready once; each rendering has a budget of its own."""

    def __init__(self, text: str) -> None:
        """Raises BadInput where the template is too long or broken."""
        check("chat template", "characters", len(text), "template_bytes")
        self.sandbox = _Sandbox()
        with _told():
            self.made = self.sandbox.from_string(text)

    def render(self, messages: list[dict[str, Any]], **values: Any) -> str:
        """As `render`, below."""
        self.sandbox.steps, pieces, length = STEPS, list[str](), 0
        with _told():
            for piece in self.made.generate(messages=messages, **EXPECTED | values):
                pieces.append(piece)
                length += len(piece)
                _length(length)
        return "".join(pieces)


def render(template: str, messages: list[dict[str, Any]], **values: Any) -> str:
    """The prompt for `messages` (each with `role` and `content`), in this process.

    `values`: what else the template may see, such as `add_generation_prompt`, `bos_token`, `tools`.
    Raises BadInput where the template is broken, refuses the messages or asks for too much. Its
    time and memory are bounded where `engine.models.text.renderer` asks for it.
    """
    return Template(template).render(messages, **values)


@contextmanager
def _told() -> Iterator[None]:
    """Whatever a template does wrong, as one line."""
    try:
        yield
    except BadInput:
        raise
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise BadInput(f"chat template: {str(error)[:200] or type(error).__name__}") from None
    except MemoryError:
        raise over("chat template", "asks for more memory", "template_memory") from None
    except Exception as error:  # it is a program: there is no fault it cannot raise
        raise BadInput(f"chat template: stopped ({type(error).__name__})") from None


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with a budget of steps and a bound on everything that grows."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, finalize=_shown,
            extensions=[_LOOP_CONTROLS, _Generation],
        )  # fmt: skip
        self.steps = STEPS
        kept = {name: self.filters[name] for name in FILTERS}
        kept |= {"replace": _replaced, "join": _joined, "tojson": _to_json}
        kept |= {"concatenated": _concatenated}
        self.filters = {name: self._priced(function) for name, function in kept.items()}
        self.filters["counted"] = self.counted
        self.globals = {
            "namespace": self.globals["namespace"],
            "dict": self.globals["dict"],
            "range": self._range,
            "raise_exception": _raise,
        }

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return _Bound().visit(super()._parse(source, name, filename))

    def spend(self, steps: int = 1) -> None:
        """Take from the budget."""
        self.steps -= steps
        if self.steps < 0:
            raise Stopped(f"takes more than {STEPS} steps")

    def counted(self, items: Iterable[Any]) -> list[Any]:
        """The items, each one step of the budget."""
        counted = []
        for item in items:
            self.spend()
            counted.append(item)
        return counted

    def _range(self, *bounds: int) -> range:
        numbers = range(*bounds)
        self.spend(len(numbers))
        return numbers

    def _priced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)  # keeps Jinja's mark of filters that want the context
        def priced(*args: Any, **named: Any) -> Any:
            self.spend(CALL + _length_of(args) // CHARACTERS)
            if function.__name__ in TEXTS:  # of any value
                _shown(args[-1])
            return function(*args, **named)

        return priced

    def wrap_str_format(self, value: Any) -> None:
        """No `format`: it pads without bound."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """As Jinja has it, without the methods of text that pad without bound."""
        wide = isinstance(obj, str) and attr in WIDE_METHODS
        wide |= isinstance(obj, int) and attr == "to_bytes"
        wide |= isinstance(obj, bytes | bytearray)
        return not wide and super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, callee: Any, *args: Any, **named: Any) -> Any:
        """Every call costs; methods of text that can multiply it are checked first."""
        owner = getattr(callee, "__self__", None)
        self.spend(CALL + _length_of((owner, *args)) // CHARACTERS)
        if isinstance(owner, str):
            method = getattr(callee, "__name__", "")
            if method == "replace" and len(args) >= 2:
                return _replaced(owner, *args)
            if method == "join" and args:
                return _joined(args[0], owner)
        return super().call(context, callee, *args, **named)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Arithmetic with its result bounded before it is made."""
        self.spend(1 + _length_of((left, right)) // CHARACTERS)
        if operator == "%" and isinstance(left, str) and re.search(r"\*|\d{4}", left):
            raise Stopped("formats text wider than it may")
        if operator == "%" and isinstance(left, str):
            _shown(right)
        if operator == "*":
            _sized_product(left, right)
        if operator == "**" and not (_small(left, 1 << 16) and _small(right, 64)):
            raise Stopped("raises to a power beyond reason")
        value = super().call_binop(context, operator, left, right)
        if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            raise Stopped("makes a number beyond reason")
        return _sized(value)


_LOOP_CONTROLS = "jinja2.ext.loopcontrols"


class _Generation(Extension):
    """`{% generation %}`, which transformers knows: marks what a model learns, changes nothing."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class _Bound(NodeTransformer):
    """Makes loops count their rounds and `~` check its length."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        if node.recursive:
            raise Stopped("uses a recursive loop")
        node.iter = nodes.Filter(node.iter, "counted", [], [], None, None, lineno=node.lineno)
        return self.generic_visit(node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        parts = nodes.List(node.nodes, lineno=node.lineno)
        whole = nodes.Filter(parts, "concatenated", [], [], None, None, lineno=node.lineno)
        return self.generic_visit(whole)


def _shown(value: Any) -> Any:
    """The value, where no text that is made of it tells where in memory something lies."""
    if value is None or isinstance(value, str | int | float | Undefined):
        return value
    if isinstance(value, dict | list | tuple | set):
        for inner in [*value, *(value.values() if isinstance(value, dict) else ())]:
            _shown(inner)
    elif ADDRESS.search(str(value)):
        raise Stopped("makes text of a function")
    return value


def _sized(value: Any) -> Any:
    if isinstance(value, str | list | tuple) and len(value) > LARGEST_TEXT:
        raise Stopped(f"makes a text longer than {LARGEST_TEXT} characters")
    return value


def _small(value: Any, bound: int) -> bool:
    return isinstance(value, int | float) and abs(value) <= bound


def _sized_product(left: Any, right: Any) -> None:
    for many, times in ((left, right), (right, left)):
        if isinstance(many, str | list | tuple) and isinstance(times, int):
            _length(len(many) * max(times, 0))


def _length_of(values: Iterable[Any]) -> int:
    return sum(len(value) for value in values if isinstance(value, str | list | tuple | dict))


def _length(length: int) -> None:
    if length > LARGEST_TEXT:
        raise Stopped(f"makes a text longer than {LARGEST_TEXT} characters")


def _replaced(text: str, old: str, new: str, count: int = -1) -> str:
    text, old, new = (str(_shown(each)) for each in (text, old, new))
    _length(len(text) + text.count(old) * len(new))
    return text.replace(old, new, -1 if count is None else count)


def _joined(items: Iterable[Any], separator: str = "", attribute: str | None = None) -> str:
    texts = [str(_shown(item if attribute is None else item[attribute])) for item in items]
    _length(sum(map(len, texts)) + len(separator) * len(texts))
    return str(separator).join(texts)


def _concatenated(parts: list[Any]) -> str:
    return _joined(parts)


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    """As transformers has it: plain JSON, nothing escaped for HTML."""
    if indent is not None and not 0 <= indent <= 16:
        raise Stopped("indents beyond reason")
    return _sized(json.dumps(value, ensure_ascii=ensure_ascii, indent=indent))


def _raise(message: str) -> None:
    raise Stopped(f"refuses: {_shown(message)}")
