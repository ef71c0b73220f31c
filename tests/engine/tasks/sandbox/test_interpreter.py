"""The small language: what it has means what Python means, and nothing else is there."""

import ast
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tasks.list_programs import LINES, Line
from engine.tasks.sandbox.interpreter import CALLED, DEEPEST, FORMS, ITEMS, TEXT, run

SAME = [
    "x[1]", "x[-1]", "x[::-1]", "x[1:3]", "x[:2] + x[2:]", "[v * v - 1 for v in x]",
    "[v for v in x if v % 2 == 0 if v > 1]", "[a - b for a, b in zip(x, x[1:])]",
    "[i * v for i, v in enumerate(x)]", "sorted(x)", "sum(x) // len(x)", "max(x) - min(x)",
    "[abs(v - 5) for v in x]", "-x[0]", "x[0] if x[1] < x[2] else x[3]", "1 < x[0] < 9",
    "[x[i] for i in range(len(x) - 1, -1, -1)]", "[sum(x[:i]) for i in range(4)]", "(3, 4)[1]",
    "x[9]", "x[0] % 0", "x + 1", "x[x]", "sorted(3)", "nobody", "max([])", "[1] * 3",
]  # fmt: skip
REFUSED = {
    "an import": "import os",
    "an import from": "from os import path",
    "an attribute": "x = x.append",
    "a class": "x = ().__class__.__base__.__subclasses__()",
    "a method": "x.append(1)",
    "a function": "def f(): pass",
    "a lambda": "x = (lambda: 1)()",
    "a name with underscores": "x = __builtins__",
    "a name of one": "_ = 1",
    "a name that has a meaning": "sum = 1",
    "a text": "x = 'a'",
    "bytes": "x = b'a'",
    "a fraction": "x = 1.5",
    "a complex number": "x = 1j",
    "nothing": "x = None",
    "a truth": "x = True",
    "dots": "x = ...",
    "a power": "x = 9 ** 9",
    "a shift": "x = 1 << 60",
    "a format": "x = f'{x}'",
    "a set": "x = {1, 2}",
    "a dict": "x = {1: 2}",
    "a generator": "x = sum(v for v in x)",
    "two loops in one": "x = [a for a in x for b in x]",
    "a walrus": "x = [y := 1, 2]",
    "stars": "x = [*x]",
    "a keyword": "x = sorted(x, reverse=1)",
    "an expression": "x",
    "two names": "x, y = 1, 2",
    "two targets": "x = y = 1",
    "a place": "x[0] = 1",
    "more of it": "x += 1",
    "a deletion": "del x",
    "a loop": "for v in x: pass",
    "an endless loop": "while 1: pass",
    "a condition": "if x: x = 1",
    "a try": "try: x = 1\nexcept: pass",
    "a with": "with x: pass",
    "global": "global x",
    "await": "x = await x",
    "an assertion": "assert x",
    "a match": "match x:\n  case 1: pass",
    "a list of lists": "x = [x, x]",
    "deep": "x = " + "-" * (DEEPEST + 1) + "1",
    "long": "x = 1\n" * TEXT,
    "a large number": "x = " + "9" * 30,
    "a number that grows": "y = 4611686018427387\nx = y * y * y",
    "a list that grows": "y = x + x + x + x\n" + "y = y + y\n" * 20 + "x = y",
    "much work": "y = range(999)\nx = [sum([a * b for a in y]) for b in y]",
    "a long range": f"x = range({10**15})",
}


@pytest.mark.parametrize("expression", SAME)
def test_an_expression_means_what_it_means_in_python(expression):
    x = [3, 1, 4, 1, 5]
    outcome = run(f"y = {expression}\nx = y", x)
    if expression == "[1] * 3":  # the one that Python has and this language does not
        assert outcome.error == "TypeError"
        return
    names = {name: getattr(__import__("builtins"), name) for name in CALLED}
    tree = compile(ast.parse(expression, mode="eval"), "expression", "eval")
    try:
        wanted = eval(tree, {"__builtins__": names, "x": x})
    except Exception as fault:
        assert outcome.error == type(fault).__name__
    else:
        assert not outcome.error and outcome.values[-1] == wanted


@pytest.mark.parametrize("program", REFUSED.values(), ids=REFUSED)
def test_what_the_language_does_not_have_is_refused_before_it_runs(program):
    outcome = run(program, [3, 1, 4])
    assert outcome.error == "Refused"


@pytest.mark.parametrize("form", LINES)
def test_a_line_of_the_tasks_does_what_the_tasks_say(form):
    chance = Random(form)
    for _ in range(60):
        line = Line(form, chance.choice(LINES[form][0]))
        x = [chance.randrange(10) for _ in range(chance.randrange(8))]
        try:
            wanted = line.of(x)
        except IndexError:
            assert run(str(line), x) == ([], "IndexError")
        else:
            assert run(str(line), x) == ([wanted], "")


def test_lines_before_one_that_cannot_be_read_are_run():
    assert run("x = sorted(x)\nx = x[", [2, 1]) == ([[1, 2]], "SyntaxError")
    assert run("x = sorted(x)\nx = x[5]\nx = [", [2, 1]) == ([[1, 2]], "IndexError")


def test_a_start_is_not_changed():
    x = [3, 1, 2]
    run("x = sorted(x)\nx = x + x", x)
    assert x == [3, 1, 2]


def test_no_form_leads_to_a_name_of_pythons_own():
    for node in (ast.Attribute, ast.Import, ast.Lambda, ast.Starred, ast.JoinedStr, ast.NamedExpr):
        assert node not in FORMS


LETTERS = "x = [(v + 1) % 10 for v in x]\n:,_.<>'\"\\{}*-/@!#0123456789abcdefghijklmnopqrstuvwz"


@given(st.text(LETTERS, max_size=80) | st.text(max_size=60))
def test_no_text_raises_or_grows(text):
    outcome = run(text, [3, 1, 4, 1])
    for value in outcome.values:
        items = value if isinstance(value, list) else [value]
        assert len(items) <= ITEMS and all(isinstance(item, int) for item in items)
