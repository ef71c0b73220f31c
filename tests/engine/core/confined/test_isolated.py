"""An isolated process attacked by code that runs in it as it likes: nothing gets out or stays."""

import json
import os
import threading
import time
from pathlib import Path

import pytest

from engine.core.confined.child import LONGEST
from engine.core.confined.children import Children
from engine.core.errors import BadInput
from engine.core.limits import changed

OS = "os = sys.modules['os']; "
SECRET = "not for programs"
REFUSED = {  # by a filter of calls; without one the attack may end otherwise
    "a file": "open('/etc/passwd')",
    "a file by number": OS + "os.open('/etc/passwd', 0)",
    "a file of one's own": "open('left', 'w')",
    "the folder above": OS + "os.chdir('..')",
    "a folder's names": OS + "os.listdir('/')",
    "the process's own facts": "open('/proc/self/environ')",
    "its parent's memory": OS + "os.open(f'/proc/{os.getppid()}/mem', 2)",
    "a file that goes": OS + "os.unlink('/tmp/x')",
    "a link": OS + "os.symlink('/etc', 'etc')",
    "another mode": OS + "os.chmod('/', 0o777)",
    "another root": OS + "os.chroot('/')",
    "another user": OS + "os.setuid(0)",
    "a fork": OS + "os.fork()",
    "forks without end": OS + "[os.fork() for _ in range(1000)]",
    "another program": OS + "os.execv('/bin/sh', ['sh', '-c', 'id'])",
    "a started program": "sys.modules['subprocess'].run(['id'])",
    "a shell": OS + "os.posix_spawn('/bin/sh', ['sh'], {})",
    "its parent's end": OS + "os.kill(os.getppid(), 9)",
    "its parent's stop": OS + "os.kill(os.getppid(), 19)",
    "everybody's end": OS + "os.kill(-1, 9)",
    "its group's end": OS + "os.killpg(0, 15)",
    "a socket": "sys.modules['socket'].socket()",
    "a name looked up": "sys.modules['socket'].gethostbyname(b'localhost')",
    "a pipe": OS + "os.pipe()",
    "a file in memory": OS + "os.memfd_create('x')",
    "more of a number": OS + "os.dup2(1, 7)",
    "another priority": OS + "os.nice(-5)",
}  # fmt: skip
MISSING = {
    "an import": "import sqlite3",
    "a built-in module": "import _tracemalloc, faulthandler",
    "native calls": "import ctypes",
    "what is installed": "import numpy",
    "ours": "import engine",
    "ours by name": "__import__('engine.core.limits')",
    "ours that was there": "sys.modules['engine.core.confined.child']",
    "native calls that were there": "sys.modules['_ctypes']",
}


@pytest.fixture(scope="module")
def attacked():
    children = Children("tests.engine.core.confined.attacker", "generated program", isolated=True)
    yield children
    children.close()


@pytest.fixture(scope="module")
def filtered(attacked):
    if "calls" not in attacked.layers:
        pytest.skip(f"no filter of system calls here, only {attacked.layers}")
    return attacked


def test_what_the_system_has_of_isolation_is_told(attacked):
    assert set(attacked.layers) <= {"limits", "namespaces", "calls"}
    assert "limits" in attacked.layers


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED)
def test_every_way_out_is_refused(filtered, code):
    said = filtered.ask(code=code)
    assert said.startswith(("PermissionError", "OSError", "gaierror", "ValueError")), said


@pytest.mark.parametrize("code", MISSING.values(), ids=MISSING)
def test_nothing_can_be_imported(attacked, code):
    assert attacked.ask(code=code).startswith(("ImportError", "ModuleNotFoundError", "KeyError"))


def test_a_thread_is_refused(filtered):
    code = "sys.modules['threading'].Thread(target=print).start()"
    assert filtered.ask(code=code).startswith("RuntimeError")


def test_the_environment_is_empty(monkeypatch):
    monkeypatch.setenv("A_TOKEN", SECRET)
    children = Children("tests.engine.core.confined.attacker", "generated program", isolated=True)
    said = children.ask(code=OS + "said = dict(os.environ)")
    children.close()
    assert SECRET not in said and "A_TOKEN" not in said and "PATH" not in said


def test_classes_lead_to_nothing_that_may_be_done(filtered):
    code = (
        "found = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen']\n"
        "found[0](['id'])"
    )
    assert filtered.ask(code=code).startswith("PermissionError")


def test_memory_is_limited(attacked):
    assert attacked.ask(code="said = len(bytearray(10**9))").startswith("MemoryError")
    grown = "x = []\nwhile True: x.append(bytearray(10**6))"
    assert attacked.ask(code=grown).startswith("MemoryError")


def test_time_is_limited_and_another_process_answers_the_next(attacked):
    with changed(program_seconds=0.2), pytest.raises(BadInput, match="program_seconds"):
        attacked.ask(code="while True: pass")
    assert attacked.ask(code="said = 1 + 1") == "done 2"


def test_a_process_that_ends_itself_is_replaced(attacked):
    with pytest.raises(BadInput, match="generated program"):
        attacked.ask(code="import_ = sys.exit; " + OS + "os._exit(0)")
    assert attacked.ask(code="said = 1 + 1") == "done 2"


@pytest.mark.parametrize(
    "code",
    [
        f"sys.stdout.buffer.write(({LONGEST + 1}).to_bytes(4, 'little')); sys.stdout.flush()",
        "sys.stdout.buffer.write(b'\\xff' * 10**7); sys.stdout.flush()",
        "sys.stdout.buffer.write(b'\\x02\\x00\\x00\\x00{['); sys.stdout.flush()",
        "sys.stdout.buffer.write(b'\\x02\\x00\\x00\\x00[]'); sys.stdout.flush()",
        "sys.stdout.buffer.write(b'\\x04\\x00\\x00\\x00null'); sys.stdout.flush()",
        "sys.stdout.buffer.write(b'\\x02\\x00\\x00\\x00{}'); sys.stdout.flush()",
    ],
    ids=["a length", "a flood", "no JSON", "a list", "nothing", "no answer"],
)
def test_what_it_writes_past_its_answer_is_an_error_and_no_more(attacked, code):
    with pytest.raises(BadInput):
        attacked.ask(code=code)
    assert attacked.ask(code="said = 1 + 1") == "done 2"


def test_no_forged_answer_reaches_the_next_question(attacked):
    forged = json.dumps({"text": "forged"}).encode()
    frame = len(forged).to_bytes(4, "little") + forged
    with pytest.raises(BadInput):
        attacked.ask(code=f"sys.stdout.buffer.write({frame!r} * 2); sys.stdout.flush()")
    later = f"sys.stdout.buffer.write({frame!r})"
    with pytest.raises(BadInput):
        attacked.ask(code=later)
    assert [attacked.ask(code="said = 3") for _ in range(4)] == ["done 3"] * 4


def test_its_folder_is_empty_and_gone(attacked):
    left = {path.name for path in Path.cwd().iterdir()}
    attacked.ask(code="open('left', 'w').write('x')")
    assert {path.name for path in Path.cwd().iterdir()} == left


def test_it_ends_when_nobody_asks_any_more():
    children = Children("tests.engine.core.confined.attacker", "generated program", isolated=True)
    (pid,) = [child.pid for child in list(children._free.queue) if child is not None]
    children.close()
    for _ in range(300):
        if not Path(f"/proc/{pid}").exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"process {pid} goes on")


def test_several_ask_at_once(attacked):
    said: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: said.append(attacked.ask(code=f"said = {n}")))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == [f"done {n}" for n in range(8)]
    assert os.getpid()
