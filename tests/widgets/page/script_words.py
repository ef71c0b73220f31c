"""The words of a JavaScript file, and which of them it declares or uses, for tests of scripts.

Enough of a lexer for our own scripts: strings, templates with what they hold, regular expressions.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<name>[A-Za-z_$][\w$]*)|(?P<number>\.?\d[\w.]*)|(?P<tick>`)
    |(?P<mark>=>|\.\.\.|\?\.|\?\?=?|\|\|=?|&&=?|[-+*/%<>=!&|^]=+|\+\+|--|\*\*|[^\w\s])""",
    re.VERBOSE | re.DOTALL,
)
REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)
VALUES = ("name", "number", "string")  # after one of them, and after ) ] }, a slash divides
BEFORE_REGEX = ("return", "typeof", "case", "in", "of", "new", "do", "else", "void")
KEYWORDS = set(
    re.findall(
        r"\w+",
        """
        async await break case catch class const continue default delete do else export extends
        false finally for from function get if import in instanceof let new null of return set
        static super switch this throw true try typeof undefined var void while yield
        """,
    )
)
NAMES_TOO = {"get", "set", "delete", "from", "of"}  # methods may be called so
OPENS, CLOSES = ("{", "(", "[", "${"), ("}", ")", "]")


@dataclass(frozen=True)
class Word:
    """`kind`: name, number, string, regex or mark. `first`: it begins its line, at the edge."""

    kind: str
    text: str
    first: bool
    line: int


def words(text: str) -> list[Word]:
    """The words of a script, comments and blanks left out, those inside templates included."""
    made: list[Word] = []
    _scan(text, 0, made, inside=False)
    return made


def _scan(text: str, at: int, made: list[Word], inside: bool) -> int:
    """Read on from `at` to the end, or to the brace that ends a template's expression."""
    depth = 0
    while at < len(text):
        if text[at] == "/" and text[at : at + 2] not in ("//", "/*") and _begins_regex(made):
            match = REGEX.match(text, at)
            if match:
                made.append(Word("regex", match[0], False, _line(text, at)))
                at = match.end()
                continue
        found = TOKEN.match(text, at)
        kind, word, first = found.lastgroup, found[0], at == 0 or text[at - 1] == "\n"
        at = found.end()
        if kind == "tick":
            at = _template(text, at, made, first)
        elif kind not in ("space", "comment"):
            depth += (word == "{") - (word == "}")
            if inside and depth < 0:
                return at
            made.append(Word(kind, word, first, _line(text, at - 1)))
    return at


def _template(text: str, at: int, made: list[Word], first: bool) -> int:
    made.append(Word("string", "`", first, _line(text, at)))
    while True:
        at = TEMPLATE.match(text, at).end()
        if text[at : at + 2] != "${":
            return at + 1
        made.append(Word("mark", "${", False, _line(text, at)))
        at = _scan(text, at + 2, made, inside=True)
        made.append(Word("mark", "}", False, _line(text, at)))
        made.append(Word("string", "`", False, _line(text, at)))


def _begins_regex(made: list[Word]) -> bool:
    if not made:
        return True
    last = made[-1]
    if last.kind in VALUES:
        return last.text in BEFORE_REGEX
    return last.text not in CLOSES


def _line(text: str, at: int) -> int:
    return bisect_left(_breaks(text), at)


@lru_cache(maxsize=2)
def _breaks(text: str) -> list[int]:
    """Where its lines end."""
    return [found.start() for found in re.finditer("\n", text)]


def top_level(listed: list[Word]) -> list[str]:
    """Names declared outside all functions, in order."""
    found: list[str] = []
    depth, is_listing = 0, False  # whether in a list of constants
    for place, word in enumerate(listed):
        if word.kind == "mark":
            depth += (word.text in OPENS) - (word.text in CLOSES)
        if word.first and word.text not in CLOSES:
            is_listing = False
        following = listed[place + 1 : place + 3]
        if depth or not following:
            continue
        name = following[0].text
        if word.text in ("const", "let", "var", "class"):
            found.append(name)
            is_listing = word.text != "class"
        elif word.text == "function":
            found.append(following[1].text if name == "*" else name)
        elif word.text == ";":
            is_listing = False
        elif word.text == "," and is_listing and following[0].kind == "name":
            found.append(name)
    return found


def used(listed: list[Word]) -> set[str]:
    """Names that are neither sought in an object, nor keys, nor names of methods."""
    return {
        word.text
        for place, word in enumerate(listed)
        if word.kind == "name"
        and word.text not in KEYWORDS
        and _text(listed, place - 1) not in (".", "?.")
        and not _is_key(listed, place)
        and not _is_method(listed, place)
    }


def declared(listed: list[Word]) -> set[str]:
    """Names declared anywhere: constants, functions, classes, and what functions are given."""
    found: set[str] = set()
    for place, word in enumerate(listed):
        if word.kind == "name" and _text(listed, place - 1) in (".", "?."):
            continue
        if word.text in ("const", "let", "var"):
            found |= _constants(listed, place + 1)
        elif word.text == "class":
            found.add(_text(listed, place + 1))
        elif word.text == "function":
            at = place + 1 + (_text(listed, place + 1) == "*")
            found |= {_text(listed, at)} | _pattern(listed, at + 1, _end(listed, at + 1))
        elif word.text == "catch" or _is_method(listed, place):
            found |= _pattern(listed, place + 1, _end(listed, place + 1))
        elif word.text == "=>":
            is_one = listed[place - 1].kind == "name"
            first = place - 1 if is_one else _begin(listed, place - 1)
            found |= _pattern(listed, first, place - 1)
    return found - {"("}


def _text(listed: list[Word], place: int) -> str:
    return listed[place].text if 0 <= place < len(listed) else ""


def _is_key(listed: list[Word], place: int) -> bool:
    return _text(listed, place + 1) == ":" and _text(listed, place - 1) in ("{", ",")


def _is_method(listed: list[Word], place: int) -> bool:
    """Whether a name is that of a method: brackets follow it, and then a body."""
    word = listed[place]
    if word.kind != "name" or word.text in KEYWORDS - NAMES_TOO:
        return False
    if _text(listed, place + 1) != "(":
        return False
    if _text(listed, place - 1) in (".", "?.", "function", "new"):
        return False
    return _text(listed, _end(listed, place + 1) + 1) == "{"


def _end(listed: list[Word], place: int) -> int:
    """Where the bracket that opens at `place` closes; `place` where none opens there."""
    depth = 0
    for at in range(place, len(listed)):
        if listed[at].kind == "mark":
            depth += (listed[at].text in OPENS) - (listed[at].text in CLOSES)
        if depth <= 0:
            return at
    return len(listed)


def _begin(listed: list[Word], place: int) -> int:
    """Where the bracket that closes at `place` opens."""
    depth = 0
    for at in range(place, -1, -1):
        if listed[at].kind == "mark":
            depth += (listed[at].text in CLOSES) - (listed[at].text in OPENS)
        if depth <= 0:
            return at
    return 0


def _pattern(listed: list[Word], first: int, last: int) -> set[str]:
    """Names that the pattern from `first` to `last` binds; its defaults bind none."""
    found, at = set(), first
    while at <= last:
        word = listed[at]
        if word.text == "=":
            at = _skip(listed, at + 1, last)
            continue
        if word.kind == "name" and not _is_key(listed, at):
            found.add(word.text)
        at += 1
    return found


def _constants(listed: list[Word], at: int) -> set[str]:
    """Names bound by the declarators from `at` on."""
    found: set[str] = set()
    while at < len(listed):
        last = _end(listed, at)
        found |= _pattern(listed, at, last)
        at = last + 1
        if _text(listed, at) == "=":
            at = _skip(listed, at + 1, len(listed) - 1)
        if _text(listed, at) != "," or listed[at].kind != "mark":
            break
        at += 1
    return found


def _skip(listed: list[Word], at: int, last: int) -> int:
    """Where the expression that begins at `at` ends: at a comma, a semicolon or a closing bracket
    outside of its own brackets, or where a new line begins another statement."""
    first = at
    while at <= last:
        word = listed[at]
        if word.kind == "mark" and word.text in (",", ";", *CLOSES):
            return at
        is_new = at > first and word.line > listed[at - 1].line and listed[at - 1].text != "=>"
        if is_new and word.kind != "mark" and listed[at - 1].kind != "mark":
            return at
        if is_new and word.kind != "mark" and listed[at - 1].text in CLOSES:
            return at
        at = _end(listed, at) + 1
    return at
