"""The command's entry: what happens before anything is loaded."""

import subprocess
import sys

import pytest

STRUCK = """
import signal, sys
class Strikes:
    def find_spec(self, name, path=None, target=None):
        if name == "WHERE":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise RAISED from None
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Strikes())
"""
STANDS_IN = """
import os, sys, types
class Main(types.ModuleType):
    def command(self):
        print("out"), sys.stderr.write("err")
        os._exit(os.open(os.devnull, os.O_RDONLY))
sys.modules["workbench.cli.main"] = Main("workbench.cli.main")
"""
ENTERS = "from workbench.start.entry import command; command()"


def called(code, root, shell=""):
    words = [sys.executable, "-c", code + ENTERS]
    if shell:
        words = ["sh", "-c", shell, "sh", *words]
    return subprocess.run(
        words, cwd=root, env={"PYTHONPATH": str(root)}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("where", "raised"),
    [
        ("workbench.interrupts", "KeyboardInterrupt"),  # before anything hears it
        ("workbench.cli.main", "KeyboardInterrupt"),
        ("workbench.cli.main", "ImportError('C cannot import it')"),  # as numpy tells it
    ],
)
def test_ctrl_c_while_the_command_loads_is_one_line(where, raised, root):
    ran = called(STRUCK.replace("WHERE", where).replace("RAISED", raised), root)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "workbench: interrupted\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_streams_number_goes_to_no_file(closed, root):
    ran = called(STANDS_IN, root, f'exec "$@" {closed}')
    assert ran.returncode > 2, ran.stderr


def test_a_folder_that_has_gone_is_one_line(root, tmp_path):
    ran = called(STANDS_IN, root, f'mkdir {tmp_path}/a; cd {tmp_path}/a; rmdir ../a; exec "$@"')
    assert ran.returncode == 2 and ran.stderr.startswith("workbench: the folder that it is called")
