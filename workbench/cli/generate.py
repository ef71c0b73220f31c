"""`workbench generate`: text from a model, as it comes."""

import argparse
import queue

from workbench.cli.output import check_place, print_json, say

ABOUT = """continue a prompt with a model, printing as it comes

  workbench generate "def main(" --max-tokens 60"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", metavar="PROMPT", help="the text to continue")
    parser.add_argument(
        "--model", default="stdlib-5m", metavar="NAME", help="a shipped model or a folder"
    )
    parser.add_argument("--max-tokens", default="64", metavar="N", help="at most so many tokens")
    parser.add_argument("--temperature", default="0", metavar="T", help="0: the likeliest token")
    parser.add_argument("--top-p", default="1", metavar="P", help="keep the likeliest up to this")
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end before it")
    parser.add_argument("--seed", default=None, metavar="N", help="the draws' seed")
    parser.add_argument("--save", metavar="FILE", help="keep the run in this file (*.run)")
    parser.add_argument("--json", action="store_true", help="print JSON at the end")


def run(args: argparse.Namespace) -> int:
    from engine.core.config import update
    from engine.core.file import save
    from engine.inference.config import InferenceConfig
    from engine.inference.requests.request import sampling
    from workbench.live.live import LiveEngine
    from workbench.live.pieces import Piece

    names = ("max_tokens", "temperature", "top_p", "seed", "stop")
    wish = sampling(**{name: getattr(args, name) for name in names})
    check_place(args.save)
    pieces: queue.SimpleQueue[Piece] = queue.SimpleQueue()
    live = LiveEngine(update(InferenceConfig(), {"model": args.model})).start().wait()
    try:
        live.ask(live.prompts.encode(args.prompt), wish, pieces.put)
        found = [pieces.get()]
        while not found[-1].reason:
            if not args.json:
                print(found[-1].text, end="", flush=True)
            found.append(pieces.get())
    finally:
        live.close()
    if not args.json:
        print()
    if found[-1].refused:
        say(f"workbench: {found[-1].refused}")
        return 2
    assert live.run is not None
    if args.save:
        say(f"saved {save(live.run.wait(5).log, args.save)}")
    if args.json:
        text = "".join(piece.text for piece in found)
        count = sum(piece.token is not None for piece in found)
        print_json({"text": text, "tokens": count, "finish_reason": found[-1].reason})
    return 0
