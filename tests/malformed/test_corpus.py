"""Thousands of malformed files: each opens or gives one line; none crashes, hangs, eats memory."""

import json
import queue
import random
import subprocess
import sys
import threading
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.malformed.corpus import KINDS

PATIENCE = 300.0  # seconds of waiting for one answer, however busy the machine is
SECONDS = 5.0  # of processor time for one file; they are small
FEW, MANY = 300, 3000  # damaged files of a kind, beside its named cases; the many with --full


class Opener:
    """The process that opens files; one that dies or hangs is named, and ended with the test."""

    def __init__(self):
        words = [sys.executable, "-m", "tests.malformed.opener"]
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.child.stdout:
            self.lines.put(line)
        self.lines.put(b"")

    def open(self, kind, path):
        asked = json.dumps({"kind": kind, "path": str(path)})
        try:
            self.child.stdin.write(asked.encode() + b"\n")
            self.child.stdin.flush()
            line = self.lines.get(timeout=PATIENCE)
        except queue.Empty:
            self.child.kill()
            return {"how": "hung", "line": "", "seconds": PATIENCE}
        except BrokenPipeError:
            line = b""
        if line:
            return json.loads(line)
        return {"how": "died", "line": f"exit {self.child.wait()}", "seconds": 0.0}

    def close(self):
        self.child.kill()
        self.child.wait()


@pytest.fixture(scope="module")
def opener():
    made = [Opener()]

    def open_file(kind, path):
        if made[0].child.poll() is not None:
            made[0] = Opener()
        return made[0].open(kind, path)

    yield open_file
    made[0].close()


def clear(came):
    """Whether a file was opened or refused in one readable line, soon."""
    told = came["how"] == "refused" and 10 < len(came["line"]) < 600 and "\n" not in came["line"]
    return (told or came["how"] == "opened") and came["seconds"] <= SECONDS


@pytest.mark.parametrize("kind", KINDS)
def test_every_malformed_file_opens_or_gives_one_line(opener, tmp_path, full, kind):
    wrong, hows = [], []
    draw = random.Random(zlib.crc32(kind.encode()))
    for case, data in KINDS[kind](MANY if full else FEW, tmp_path, draw):
        name, _, file = case.rpartition("/")
        path = tmp_path / file
        path.write_bytes(data)
        came = opener(kind, path)
        hows.append(came["how"])
        if not clear(came):
            wrong.append((name, came))
        path.unlink()
    assert not wrong, f"{len(wrong)} of {len(hows)}: {wrong[:5]}"
    assert hows[0] == "opened", "the sound file the others are made from"
    assert hows.count("refused") >= 20


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
NAMES = st.sampled_from(
    ["traceEvents", "ph", "ts", "cells", "nbformat", "metadata", "model", "vocab", "hidden_size"]
) | st.text(max_size=8)  # fmt: skip
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5)
)
FILES = {
    "trace": "a.json",
    "config": "config.json",
    "tokenizer": "tokenizer.json",
    "notebook": "a.ipynb",
}


@pytest.mark.parametrize("kind", FILES)
def test_any_json_opens_or_gives_one_line(opener, tmp_path_factory, kind):
    path = tmp_path_factory.mktemp(kind) / FILES[kind]

    @settings(deadline=None, max_examples=100)
    @given(VALUES)
    def holds(value):
        path.write_text(json.dumps(value))
        came = opener(kind, path)
        assert clear(came), came

    holds()


def test_the_whole_corpus_is_of_two_thousand_files(tmp_path):
    counts = {}
    for kind, make in KINDS.items():
        cases = [case for case, _ in make(FEW, tmp_path, random.Random(0))]
        counts[kind] = len(cases)
        assert len(set(cases)) == len(cases), kind
    assert sum(counts.values()) >= 2000, counts
    assert min(counts.values()) >= 150, counts
