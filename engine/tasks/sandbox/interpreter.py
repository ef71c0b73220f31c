"""Interpreter of a small part of Python: lines that assign expressions over integers and lists.

In come a program and the values its variable begins with; out come that variable after every line,
and what stopped it. What is not on the lists below is refused before anything is run: no
attribute, no import, no function of one's own, no name with an underscore at its ends.
"""

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

VARIABLE = "x"
STEPS = 5_000  # nodes evaluated by a run
ITEMS = 1_000  # of a list
LARGEST = 1 << 62  # of an integer's size
TEXT = 4_000  # characters of a program
DEEPEST = 40  # expressions within each other
UNREAD = frozenset("\r\f\0")  # what Python's reader of lines takes for something else

BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
COMPARED: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
CALLED: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "enumerate": lambda items: list(enumerate(_list(items))),
    "len": lambda items: len(_list(items)),
    "max": max,
    "min": min,
    "range": lambda *ends: list(range(*ends)[: ITEMS + 1]),
    "sorted": lambda items: sorted(_list(items)),
    "sum": lambda items: sum(_list(items)),
    "zip": lambda *lists: list(zip(*map(_list, lists), strict=False)),
}
FORMS = (
    ast.Assign, ast.BinOp, ast.Call, ast.Compare, ast.Constant, ast.IfExp, ast.List, ast.ListComp,
    ast.Load, ast.Module, ast.Name, ast.Slice, ast.Store, ast.Subscript, ast.Tuple, ast.UnaryOp,
    ast.USub, ast.comprehension, *BINARY, *COMPARED,
)  # fmt: skip


class Refused(Exception):
    """A program asks for what this language does not have, or for more than it may cost."""


class Outcome(NamedTuple):
    """`values`: of the variable after each line of the text; `error`: what stopped it, or ""."""

    values: list[Any]
    error: str


def run(text: str, start: Any) -> Outcome:
    """What a program makes of its variable. Never raises, whatever the text.

    Where a line cannot be read, those before it are run: what is wrong with the rest is told after
    them. Errors are Python's names, `Refused` of what there is not.
    """
    if len(text) > TEXT or not UNREAD.isdisjoint(text):
        return Outcome([], "Refused")
    lines, error = text.removesuffix("\n").split("\n"), ""
    while True:
        try:
            tree = ast.parse("\n".join(lines))
            break
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            lines, error = lines[:-1], "SyntaxError"
    values: list[Any] = []
    machine = Machine({VARIABLE: start})
    for number in range(1, len(lines) + 1):
        try:
            for each in tree.body:
                if each.end_lineno == number:
                    allow(each)
                    machine.assign(each)
        except Refused:
            return Outcome(values, "Refused")
        except (ArithmeticError, LookupError, NameError, TypeError, ValueError) as fault:
            return Outcome(values, type(fault).__name__)
        values.append(machine.names[VARIABLE])
    return Outcome(values, error)


def allow(line: ast.stmt) -> None:
    """Raises Refused for a line that holds anything that is not on the lists."""
    level: list[ast.AST] = [line]
    for _ in range(DEEPEST):
        if not level:
            return
        for node in level:
            if not isinstance(node, FORMS):
                raise Refused
            if isinstance(node, ast.Constant) and type(node.value) is not int:
                raise Refused
            if isinstance(node, ast.Name) and (node.id.startswith("_") or node.id.endswith("_")):
                raise Refused
        level = [inner for node in level for inner in ast.iter_child_nodes(node)]
    raise Refused


class Machine:
    """Evaluates allowed lines; counts what they cost."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.left = STEPS

    def assign(self, line: ast.stmt) -> None:
        """Raises Refused, or what Python raises. Integers and lists of them have names, no more."""
        if not isinstance(line, ast.Assign) or len(line.targets) != 1:
            raise Refused
        target = line.targets[0]
        if not isinstance(target, ast.Name) or target.id in CALLED:
            raise Refused
        value = self.value(line.value, self.names)
        flat = value if isinstance(value, list) else [value]
        if not all(isinstance(item, int) for item in flat):
            raise Refused
        self.names[target.id] = value

    def value(self, node: ast.expr, names: dict[str, Any]) -> Any:
        """An expression's value among these names; no larger than a value may be."""
        self.left -= 1
        if self.left < 0:
            raise Refused
        return bounded(self._value(node, names))

    def _value(self, node: ast.expr, names: dict[str, Any]) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                if node.id not in names:
                    raise NameError
                return names[node.id]
            case ast.List() | ast.Tuple():
                return [self.value(each, names) for each in node.elts]
            case ast.UnaryOp():
                return -_integer(self.value(node.operand, names))
            case ast.BinOp():
                left, right = self.value(node.left, names), self.value(node.right, names)
                return _binary(type(node.op), left, right)
            case ast.Compare():
                return self._compare(node, names)
            case ast.IfExp():
                chosen = node.body if self.value(node.test, names) else node.orelse
                return self.value(chosen, names)
            case ast.Subscript():
                items, at = _list(self.value(node.value, names)), node.slice
                if not isinstance(at, ast.Slice):
                    return items[_integer(self.value(at, names))]
                ends = [at.lower, at.upper, at.step]
                return items[slice(*(e and _integer(self.value(e, names)) for e in ends))]
            case ast.ListComp() if len(node.generators) == 1:
                return list(self._each(node.elt, node.generators[0], names))
            case ast.Call() if isinstance(node.func, ast.Name) and not node.keywords:
                if node.func.id not in CALLED:
                    raise NameError
                given = [self.value(each, names) for each in node.args]
                return CALLED[node.func.id](*given)
        raise Refused

    def _compare(self, node: ast.Compare, names: dict[str, Any]) -> bool:
        left = self.value(node.left, names)
        for sign, each in zip(node.ops, node.comparators, strict=True):
            right = self.value(each, names)
            if not COMPARED[type(sign)](left, right):
                return False
            left = right
        return True

    def _each(
        self, result: ast.expr, loop: ast.comprehension, names: dict[str, Any]
    ) -> Iterator[Any]:
        """What a comprehension makes of each item."""
        inner = dict(names)
        for item in _list(self.value(loop.iter, names)):
            _bind(loop.target, item, inner)
            if all(self.value(test, inner) for test in loop.ifs):
                yield self.value(result, inner)


def bounded(value: Any) -> Any:
    """`value`. Raises Refused where it is too large."""
    if isinstance(value, list) and len(value) > ITEMS:
        raise Refused
    if isinstance(value, int) and abs(value) > LARGEST:
        raise Refused
    return value


def _binary(sign: type[ast.AST], left: Any, right: Any) -> Any:
    """Lists are put together, and nothing else is done to them: to repeat one is refused, as its
    size would be known too late."""
    if sign is not ast.Add or not isinstance(left, list | tuple):
        left, right = _integer(left), _integer(right)
    return BINARY[sign](left, right)


def _bind(target: ast.expr, item: Any, names: dict[str, Any]) -> None:
    if isinstance(target, ast.Name):
        names[target.id] = item
        return
    if not isinstance(target, ast.Tuple):
        raise Refused
    for name, part in zip(target.elts, _list(item), strict=True):
        _bind(name, part, names)


def _list(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        raise TypeError
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value
