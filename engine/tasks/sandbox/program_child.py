"""The process in which generated programs run: isolated, with the interpreter and nothing else."""

import json
import sys
from typing import Any

from engine.core.confined.child import serve
from engine.tasks.sandbox.interpreter import run


def answer(asked: dict[str, Any]) -> dict[str, str]:
    """What the program makes of each start: its values line by line, and what stopped it."""
    return {"text": json.dumps([run(asked["program"], start) for start in asked["starts"]])}


if __name__ == "__main__":
    serve(int(sys.argv[1]), answer, isolated=True)
