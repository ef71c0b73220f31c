"""Chat templates that would escape, hang or fill the memory, a seed for each."""

import random

LOOP = "{% set n = namespace(a=START) %}{% for i in range(MANY) %}{% set n.a = NEXT %}{% endfor %}"
GROWTHS = (
    ("[1]", "[n.a, n.a]"),
    ("{'k': 1}", "{'k': n.a, 'j': n.a}"),
    ("'x'", "n.a ~ n.a"),
    ("[]", "n.a + ['x' * 99999]"),
    ("(1,)", "(n.a, n.a, n.a)"),
    ("'ab'", "n.a | replace('a', 'aa')"),
    ("[]", "n.a + [range(9999) | list]"),
    ("'x' * 1000000", "n.a[::-1]"),
)
FILTERS = ("string", "tojson", "length", "upper", "list", "sort", "join", "unique | list", "title")
USES = (
    *(f"{{{{ n.a | {name} }}}}" for name in FILTERS),
    "{{ n.a == n.a }}",
    "{{ n.a in [n.a, 1] }}",
    "{{ n.a ~ n.a }}",
    "{{ [n.a] * 9999 | length }}",
    "{{ (n.a | string) in (n.a | string) }}",
    "{% for x in n.a %}{{ x }}{% endfor %}",
)
BLOCKS = (
    ("{% for i in range(9) %}", "{% endfor %}"),
    ("{% if 1 %}", "{% endif %}"),
    ("{{ ((", "}}"),
    ("{% macro m() %}{{ m() }}", "{% endmacro %}{{ m() }}"),
    ("{{ [", "] }}"),
    ("{% set a %}", "{% endset %}"),
)
STARTS = (
    "''", "[]", "messages", "range", "namespace()", "dict", "self", "raise_exception", "''.join",
    "messages[0].items", "loop", "caller", "cycler",
)  # fmt: skip
NAMES = (
    "__class__", "__mro__", "__globals__", "__init__", "__subclasses__", "gi_frame", "f_back",
    "_TemplateReference__context", "func_globals", "mro",
)  # fmt: skip


def grown(draw: random.Random) -> str:
    """Values that hold each other, lists that grow, and something done with them."""
    start, step = draw.choice(GROWTHS)
    many = str(draw.choice([25, 40, 60, 2000, 90000]))
    made = LOOP.replace("START", start).replace("MANY", many).replace("NEXT", step)
    return made + draw.choice(USES)


def deep(draw: random.Random) -> str:
    """Nesting of blocks, brackets, calls and macros."""
    depth = draw.choice([20, 100, 1000, 9000])
    opening, closing = draw.choice(BLOCKS)
    return opening * depth + "x" + closing * depth


def reaching(draw: random.Random) -> str:
    """Ways to Python's own objects."""
    start = draw.choice(STARTS)
    names = [draw.choice(NAMES) for _ in range(draw.randint(1, 4))]
    form = draw.randrange(3)
    if form == 0:
        return "{{ " + start + "".join(f".{name}" for name in names) + " }}"
    if form == 1:
        return "{{ " + start + "".join(f"['{name}']" for name in names) + " }}"
    spelled = "'{0." + ".".join(names) + "}'"
    return "{{ " + f"{spelled}.format({start})" + " }}{{ " + f"{start} | attr('{names[0]}')" + " }}"


KINDS = {"grown": grown, "deep": deep, "reaching": reaching}
