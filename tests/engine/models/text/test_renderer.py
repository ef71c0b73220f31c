"""Templates in a process of their own: what costs too much ends there, and the next is answered."""

import os
import random
import threading
import time
from pathlib import Path

import pytest

from engine.core.confined.children import CHILDREN
from engine.core.errors import BadInput
from engine.core.limits import changed
from engine.models.text.chat import render
from engine.models.text.renderer import Renderer
from tests.engine.models.text.test_chat import CHATML, ESCAPES_AND_BOMBS, MESSAGES

LOOP = (
    "{% set ns = namespace(a=START) %}{% for i in range(MANY) %}{% set ns.a = NEXT %}{% endfor %}"
)
GROW = LOOP.replace("START", "[1]").replace("MANY", "60").replace("NEXT", "[ns.a, ns.a]")
HELD = LOOP.replace("START", "[]").replace("MANY", "3000").replace("NEXT", "ns.a + [T]")
TOO_MUCH = [
    GROW + "{{ ns.a | string }}",
    GROW + "{{ ns.a | tojson }}",
    GROW + "{{ [ns.a, ns.a] | join }}",
    GROW + "{{ ns.a ~ 'x' }}",
    HELD.replace("T", "'a' * 1000000 ~ i"),
    "{% set t = 'a' * 4000000 %}{% for i in range(9000) %}{{ '' if t in t ~ 'b' }}{% endfor %}",
    "{% set t = range(90000) | list %}{% for i in range(9000) %}{{ '' if -1 in t }}{% endfor %}",
]


@pytest.fixture(scope="module")
def renderer():
    made = Renderer()
    yield made
    made.close()


def children():
    """Processes of ours that render."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"render_child" in (place / "cmdline").read_bytes():
                found.append(int(place.name))
        except OSError:
            continue
    return found


def test_it_says_what_the_template_says_in_this_process(renderer):
    values = {"add_generation_prompt": True, "bos_token": "<s>"}
    for _ in range(3):
        got = renderer.render(CHATML, MESSAGES, **values)
        assert got == render(CHATML, MESSAGES, **values)
    with pytest.raises(BadInput, match="unknown role robot"):
        renderer.render(CHATML, [{"role": "robot", "content": ""}])


@pytest.mark.parametrize("template", TOO_MUCH)
def test_what_costs_too_much_is_stopped_by_name_and_the_next_is_answered(renderer, template):
    with pytest.raises(BadInput, match="template_seconds|template_memory|steps|longer"):
        renderer.render(template, MESSAGES)
    assert renderer.render("{{ messages | length }}", MESSAGES) == "3"


def test_escapes_and_bombs_end_in_one_line(renderer):
    for template in ESCAPES_AND_BOMBS:
        try:
            renderer.render(template, MESSAGES)
        except BadInput as fault:
            assert "\n" not in str(fault) and len(str(fault)) < 500


def test_many_threads_are_answered_each_with_its_own(renderer):
    wrong = []

    def ask(number):
        draw = random.Random(number)
        for _ in range(20):
            text = f"{number} {draw.random()}"
            if renderer.render("{{ messages[0].content }}", [{"content": text}]) != text:
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(children()) <= CHILDREN


def test_a_child_that_was_killed_is_replaced(renderer):
    for child in children():
        os.kill(child, 9)
    time.sleep(0.5)  # until the system has ended them
    for _ in range(CHILDREN + 1):
        try:
            assert renderer.render("x", MESSAGES) == "x"
        except BadInput:
            continue
    assert renderer.render("x", MESSAGES) == "x"


def test_closed_it_leaves_no_process():
    before = set(children())
    made = Renderer()
    assert made.render("x", MESSAGES) == "x"
    made.close()
    assert set(children()) == before
    with pytest.raises(BadInput, match="closed"):
        made.render("x", MESSAGES)


def test_the_limits_can_be_raised():
    with changed(template_bytes=5), pytest.raises(BadInput, match="template_bytes=5"):
        render("123456", MESSAGES)
    assert render("123456", MESSAGES) == "123456"
