"""The process in which a tokenizer with unfamiliar patterns works on what clients write."""

import json
import sys
from typing import Any

from tokenizers import Tokenizer as Rules

from engine.core.confined.child import read, serve


def main(memory: int) -> None:
    rules = Rules.from_str(read(sys.stdin.buffer) or "")

    def answer(asked: dict[str, Any]) -> dict[str, str]:
        """The token ids, as JSON, or why there are none."""
        try:
            found = rules.encode(asked["text"], add_special_tokens=asked["special"])
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as fault:  # the library raises bare Exception, and panics beside it
            return {"refused": f"tokenizer: fails ({' '.join(str(fault).split())[:100]})"}
        return {"text": json.dumps(found.ids)}

    serve(memory, answer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
