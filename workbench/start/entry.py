"""The command's entry: Ctrl-C is heard, and streams and folder are there, before anything loads.

Loading takes a second; an interrupt in it would end in a traceback, a file opened for something
else would take the number of a stream that is closed, and libraries in C end the process where
there is no folder to be in.
"""

import os
import sys

INTERRUPTED = 130  # exit code, as shells have it


def command() -> None:
    """The `workbench` command; never returns."""
    try:
        from workbench.interrupts import heard  # inside: it takes most of the time before it hears

        _streams()
        try:
            os.getcwd()
        except OSError:
            _leave("the folder that it is called in has gone; call it in another", 2)
        with heard():
            from workbench.cli import main
        main.command()
    except KeyboardInterrupt:
        _leave("interrupted", INTERRUPTED)
    except RuntimeError as fault:  # of what the body of a class raises
        if not isinstance(fault.__cause__, KeyboardInterrupt):
            raise
        _leave("interrupted", INTERRUPTED)


def _streams() -> None:
    """Opens standard streams that are closed, on nothing."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _leave(line: str, code: int) -> None:
    """Out at once: half of what was being loaded is there, and Python would take it down."""
    sys.stderr.write(f"workbench: {line}\n")
    sys.stderr.flush()
    os._exit(code)
