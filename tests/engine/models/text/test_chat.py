"""Chat templates do what transformers does with them, and nothing else."""

import time

import pytest

from engine.core.errors import BadInput
from engine.models.text.chat import render

CHATML = """{%- for message in messages %}
    {%- if message.role not in ['user', 'assistant', 'system'] %}
        {{- raise_exception('unknown role ' ~ message.role) }}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\n' + message['content'] | trim + '<|im_end|>' + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}"""
LOOPS = """{{ bos_token }}{% set ns = namespace(found=false) %}
{% for m in messages %}
{% if loop.first and m['role'] == 'system' %}
[{{ m['content'].strip() }}]
{% set ns.found = true %}
{% continue %}
{% endif %}
{{ loop.index0 }}:{{ m['content'] | tojson }}{{ eos_token if loop.last else ';' }}
{% endfor %}{{ ns.found }}{{ tools is none }}{{ documents | default([], true) | length }}"""
MESSAGES = [
    {"role": "system", "content": " be <brief> "},
    {"role": "user", "content": 'say "好"'},
    {"role": "assistant", "content": "好"},
]


@pytest.mark.parametrize("template", [CHATML, LOOPS])
def test_templates_render_as_transformers_renders_them(template: str) -> None:
    theirs = pytest.importorskip("transformers.utils.chat_template_utils")
    values = {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
    want, _ = theirs.render_jinja_template([MESSAGES], chat_template=template, **values)
    assert render(template, MESSAGES, **values) == want[0]


def test_a_template_that_refuses_the_messages_says_so() -> None:
    with pytest.raises(BadInput, match="unknown role robot"):
        render(CHATML, [{"role": "robot", "content": ""}])


DOUBLE = "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(60) %}"
ESCAPES_AND_BOMBS = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages.__class__ }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update(role='x') }}",
    "{{ dict(a=1).update(b=2) }}",
    "{{ self.__init__.__globals__ }}",
    "{{ range.__self__.filters }}",
    "{{ range.__func__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ joiner.__init__ }}",
    "{{ lipsum(n=5) }}",
    "{{ messages | attr('__class__') }}",
    "{{ messages | map(attribute='__class__') | list | first | attr('x') }}",
    "{{ '{0.__class__}'.format(messages) }}",
    "{{ '{0.__class__}'.format_map({'0': messages}) }}",
    "{{ ('%s' % messages).__class__ }}",
    "{% include 'x' %}",
    "{% import 'os' as os %}",
    "{% extends 'x' %}",
    "{% macro f() %}{{ caller.__globals__.x }}{% endmacro %}{{ f() }}",
    "{{ 'a' * 10**9 }}",
    "{{ [0] * 10**9 }}",
    "{{ 10**9 * 'a' }}",
    "{{ 10**10**10 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ 'a'.center(10**10) }}",
    "{{ 'a'.ljust(10**10) }}",
    "{{ 'a'.zfill(10**10) }}",
    "{{ '\t'.expandtabs(10**10) }}",
    "{{ '{:10000000000}'.format(1) }}",
    "{{ 'x' | center(10**10) }}",
    "{{ 'x' | indent(10**10) }}",
    "{{ {} | tojson(indent=10**9) }}",
    "{{ ('a' * 10000) | replace('a', 'b' * 10000) }}",
    "{{ ('a' * 10000).replace('a', 'b' * 10000) }}",
    "{{ (range(1000) | list) | join('a' * 100000) }}",
    "{{ ('a' * 100000).join(range(1000) | map('string')) }}",
    "{% for i in range(10**8) %}x{% endfor %}",
    "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
    "{% for i in 'a' * 999 %}{% for j in 'a' * 999 %}{% endfor %}{% endfor %}",
    "{% for a in [[]] recursive %}{{ loop([[]]) }}{% endfor %}",
    "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(99) }}",
    DOUBLE + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
    DOUBLE + "{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}",
    DOUBLE + "{% set ns.s = ns.s | string + ns.s %}{% endfor %}{{ ns.s }}",
    "{% set s = 'a' * 4000000 %}{% for i in range(9999) %}{% set t = s.upper() %}{% endfor %}",
    "{% set s = 'a' * 4000000 %}{% for i in range(9999) %}{% set t = s | upper %}{% endfor %}",
    "{% set s = 'a' * 4000000 %}{% for i in range(99) %}{{ s }}{% endfor %}",
    "{{ 1 / 0 }}",
    "{{ messages[9].content.x }}",
    "{% if",
    "{" * 5000,
    "x" * 300_000,
    "(" * 50_000,
]


@pytest.mark.parametrize("template", ESCAPES_AND_BOMBS, ids=range(len(ESCAPES_AND_BOMBS)))
def test_no_template_escapes_or_hangs(template: str) -> None:
    started = time.process_time()
    if template.startswith(("{" * 9, "(")):
        template = "{{ " + template + " }}"
    try:
        # What is unsafe is undefined to Jinja: it prints as nothing, and using it stops.
        assert render(template, [{"role": "user", "content": "hi"}]) == ""
    except BadInput as error:
        assert "chat template" in str(error) and "\n" not in str(error)
    assert time.process_time() - started < 2, "stopped, but late"


def test_two_renderings_do_not_share_a_budget() -> None:
    loop = "{% for i in range(90000) %}{% endfor %}ok"
    assert [render(loop, []) for _ in range(3)] == ["ok"] * 3


@pytest.mark.parametrize(
    "what",
    ["range", "'a'.upper", "[range]", "{'a': range}", "messages|map('upper')",
     "namespace(a=range)"],
)  # fmt: skip
@pytest.mark.parametrize(
    "written",
    ["%s", "(%s) ~ ''", "(%s)|string", "(%s)|upper", "[%s]|join", "'%%s' %% [%s]",
     "(%s)|replace('a', 'b')", "''|replace('', %s)", "raise_exception(%s)"],
)  # fmt: skip
def test_no_text_tells_where_something_lies_in_memory(what, written):
    with pytest.raises(BadInput) as told:
        render("{{ " + written % what + " }}", [{"role": "user", "content": "x"}])
    assert "0x" not in str(told.value)


def test_what_a_user_writes_of_addresses_passes():
    messages = [{"role": "user", "content": "<f at 0x7f00>"}]
    assert "0x7f00" in render("{{ messages }}{{ messages[0].content|upper }}", messages)


def test_marks_of_what_is_learnt_change_nothing():
    """transformers' own tag, which templates made for training carry."""
    template = "{% for m in messages %}{%- generation -%} {{ m.content }}{% endgeneration %}."
    template += "{% endfor %}"
    messages = [{"role": "assistant", "content": word} for word in ("a", "b")]
    assert render(template, messages) == "a.b."
