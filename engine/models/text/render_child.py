"""The process in which chat templates are rendered."""

import sys
from functools import lru_cache
from typing import Any

from engine.core.confined.child import serve
from engine.core.errors import BadInput
from engine.models.text.chat import Template


@lru_cache(maxsize=8)
def template(text: str) -> Template:
    return Template(text)


def answer(asked: dict[str, Any]) -> dict[str, str]:
    """The text, or why there is none."""
    try:
        made = template(asked["template"]).render(asked["messages"], **asked["values"])
        return {"text": made}
    except BadInput as fault:
        return {"refused": str(fault)}


if __name__ == "__main__":
    template("warm")
    serve(int(sys.argv[1]), answer)
