"""Exports: whole, self-contained, escaped, and drawn from the log alone."""

import csv
import json
import re

import pytest

from engine.core.errors import BadInput
from engine.core.events import Branch, Opened, Token
from engine.core.file import load
from engine.core.log import Log
from tests.widgets.made_runs import serving
from widgets.export.export import page, save_page
from widgets.export.share import figures, run_file, trace
from widgets.view import views

NAMES = list(views())
EVIL = "</script><script>alert(1)</script><img src=http://evil.example/x>"


@pytest.fixture(scope="module")
def log():
    return serving(requests=12)


@pytest.fixture(scope="module")
def made(log):
    return page(log, NAMES, title="A run")


def test_the_page_holds_every_view_and_asks_nobody_for_anything(made):
    assert [name for name in NAMES if f'data-view="{name}"' not in made] == []
    addresses = set(re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s\"'<>)]*", made))
    assert {a for a in addresses if "www.w3.org" not in a} == set()
    assert (
        re.findall(r"<(?:link|iframe|img)\b|<script[^>]+src=|@import|url\((?!data:|#)", made) == []
    )
    assert "default-src 'none'" in made


def test_the_page_says_how_large_it_is_and_stays_small(log, tmp_path):
    size = save_page(log, tmp_path / "run.html", NAMES)
    assert size == (tmp_path / "run.html").stat().st_size < 6 * 2**20


def test_whatever_a_log_says_is_text_and_never_markup():
    evil = Log([
        Opened(0.0, {"model": EVIL}, study=EVIL, machine={"processor": EVIL}, facts={EVIL: 1}),
        Branch(0.0, EVIL, "", "queued"), Branch(0.1, EVIL, "", "running"),
        Token(0.2, EVIL, EVIL), Token(0.3, EVIL, EVIL), Branch(0.3, EVIL, "", "finished", EVIL),
    ])  # fmt: skip
    text = page(evil, NAMES)
    plain = page(Log([Opened(0.0, {})]), NAMES)
    for mark in ("<script", "<img", "</script"):
        assert text.count(mark) == plain.count(mark)
    assert "&lt;img src=http://evil.example/x&gt;" in text


def test_what_is_shared_is_the_log_itself(log, tmp_path):
    rows = list(csv.DictReader(figures(log).decode().splitlines()))
    assert {row["figure"]: float(row["value"]) for row in rows}["duration"] == log.duration
    path = tmp_path / "again.run"
    path.write_bytes(run_file(log))
    assert load(path) == log
    assert json.loads(trace(log))["traceEvents"]


def test_a_page_that_cannot_be_written_is_one_line(log, tmp_path):
    with pytest.raises(BadInput, match="cannot write"):
        save_page(log, tmp_path / "missing" / "run.html", ["levels"])
