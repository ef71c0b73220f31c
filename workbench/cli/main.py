"""The `workbench` command: reads arguments, runs one command, turns faults into exit codes.

Every file `<command>.py` of this folder or one under it, with ABOUT, `arguments(parser)` and
`run(args) -> int`, is a command, found by file name. Exit codes: 0 all well, 1 a claim does not
hold, 2 bad input.
"""

import argparse
import importlib
import io
import multiprocessing
import os
import pkgutil
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from engine.core.errors import BadInput
from engine.core.limits import VARIABLE, change_as_told
from engine.core.memory import out_of_memory, refused
from workbench.cli import app
from workbench.cli.output import say, visible
from workbench.interrupts import end_server, heard

EPILOG = """\
without a command, `workbench` opens the app in your browser.

examples:
  workbench                                          the app: catalogue, live engine, studies
  workbench run flover --set batching=static_batch   one run from the command line
  workbench check flover batchllm --json             do the papers' claims hold here?
  workbench generate "def main("                     text from the shipped model

files and requests from outside have price limits (bytes, entries, ratio of unpacking); an error
that names one says how to raise it: WORKBENCH_LIMITS=unpacked_ratio=1000,lanes=50000
"""
PACKAGE = "parallel-workbench"
LONGEST = 1500  # characters of a complaint; what it quotes may be longer
INTERRUPTED = 130  # exit code, as shells have it
OURS = ("engine", "widgets", "workbench")


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line with exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"workbench: {visible(message[:LONGEST])} (see `{self.prog} --help`)\n")


class Version(argparse.Action):
    """Prints the installed version; looked up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version(PACKAGE)
        except PackageNotFoundError:
            found = "of a folder that is not installed; pip install -e ."
        print(f"workbench {found}")
        parser.exit(0)


def commands() -> dict[str, ModuleType]:
    """Every command's module by its name."""
    here = [str(Path(__file__).parent)]
    places = (m.name for m in pkgutil.walk_packages(here, "workbench.cli.") if "main" not in m.name)
    modules = {name.rpartition(".")[2]: importlib.import_module(name) for name in places}
    return {name: modules[name] for name in sorted(modules) if hasattr(modules[name], "ABOUT")}


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = Parser(
        prog="workbench",
        description="Run parallel LLM systems for real, watch them, turn a knob, see it change.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=Version, nargs=0, help="print the version and exit")
    app.arguments(top)
    under = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for name, module in commands().items():
        if module is not app:
            sub = under.add_parser(
                name,
                help=module.ABOUT.splitlines()[0],
                description=module.ABOUT,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
            module.arguments(sub)
            sub.set_defaults(run=module.run)
    top.set_defaults(run=app.run)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for name in ("stdin", "stdout", "stderr"):  # closed by who started us: none, to Python
        if getattr(sys, name) is None:
            nobody = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, io.StringIO() if name == "stdin" else os.fdopen(nobody, "w"))
    for stream in (sys.stdout, sys.stderr):  # a terminal of few characters gets them written out
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with heard():
        return _main(argv)


def _main(argv: list[str] | None) -> int:
    try:
        args = parser().parse_args(argv)
        change_as_told(os.environ.get(VARIABLE, ""))
        return int(args.run(args))
    except BadInput as fault:
        return _complain(str(fault))
    except ModuleNotFoundError as fault:
        name = (fault.name or "").split(".")[0]
        if not name or name in OURS:
            raise
        return _complain(f"this needs the package {name!r}, not installed here; pip install {name}")
    except (MemoryError, RuntimeError, ImportError) as fault:
        if isinstance(fault.__cause__, KeyboardInterrupt):  # of what the body of a class raises
            return INTERRUPTED
        if not refused(fault):
            raise
        return _complain(str(out_of_memory(fault)))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`); leave stdout in a state Python can close.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as fault:  # of a file or folder: full, gone, not ours, a name too long
        if refused(fault):
            return _complain(str(out_of_memory(fault)))
        if fault.strerror is None:
            raise
        return _complain(f"{str(fault.filename or 'a file')[:200]}: {fault.strerror.lower()}")


def command() -> NoReturn:
    """The `workbench` command itself: `main`, and out, whatever still works in the background."""
    # What torch's C++ logs of connections, stacks and all, is raised as well, and told in a line.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
    code = main()
    at_work = (thread for thread in threading.enumerate() if thread.name.startswith("run "))
    if code == INTERRUPTED or any(thread.daemon for thread in at_work):
        # A run that was told to stop may be within something long, such as an import: Python would
        # wait for it, or take modules away from under it; and freeing gigabytes takes seconds.
        for child in multiprocessing.active_children():
            child.kill()
        end_server()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _complain(line: str) -> int:
    told = visible(line if len(line) <= LONGEST else f"{line[:LONGEST]} …")
    say(f"workbench: {told}")
    return 2


if __name__ == "__main__":
    command()
