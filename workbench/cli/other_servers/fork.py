"""`workbench fork`: a prompt answered by threads on any server that speaks OpenAI's completions."""

import argparse
import os
from time import perf_counter
from typing import Any

from engine.core.errors import BadInput
from workbench.cli.app import TOKEN
from workbench.cli.output import print_json, say

ABOUT = """answer a prompt by threads that fork and join, on any OpenAI-compatible server

  workbench serve --model part-sums-500k &
  workbench fork --problems 2
  workbench fork "Aa2b5;Bc8d6;<Parallel>" --server http://127.0.0.1:8000/v1

Where the model writes outlines its threads fork: each is a request of its own, and the join is a
longer prompt. The server knows nothing of it; other clients' requests share its batch. A bearer
token is taken from the environment variable WORKBENCH_TOKEN."""
MODEL = "part-sums-500k"
SERVER = "http://127.0.0.1:8000/v1"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="what the model goes on from")
    parser.add_argument("--problems", metavar="N", help="instead: so many test problems of sums")
    parser.add_argument("--server", default=SERVER, metavar="URL", help=f"default {SERVER}")
    parser.add_argument("--model", default=MODEL, metavar="NAME", help=f"default {MODEL}")
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE",
                        help="a knob of the study threadweaver, such as threads=3")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from engine.core.config import update
    from engine.reasoning.fork_join.fork_join import ForkJoinConfig
    from engine.reasoning.fork_join.http_service import HttpService
    from engine.reasoning.fork_join.trajectory import Trajectory, fork_and_join
    from workbench.cli.run import changes

    if (args.prompt is None) == (args.problems is None):
        raise BadInput("give either a prompt or --problems N")
    known = {"problems": args.problems} if args.problems is not None else {}
    config = update(ForkJoinConfig(), {"model": args.model, **known, **changes(args.set)})
    problems = list(config.task.problems("test", config.problems, config.first)) if known else []
    prompts = [problem.prompt + config.begin for problem in problems] or [args.prompt]
    service = HttpService(
        args.server, args.model, key=os.environ.get(TOKEN, ""), temperature=config.temperature
    )
    trajectories = [
        Trajectory(
            f"p{n}",
            prompt,
            config.limits(),
            config.marks,
            lambda *told: say(f"workbench: {told[-1]}"),
        )
        for n, prompt in enumerate(prompts)
    ]
    began = perf_counter()
    with service:
        list(fork_and_join(trajectories, service, config.at_once))
    seconds = perf_counter() - began
    rows = [_row(one) for one in trajectories]
    for row, problem, one in zip(rows, problems, trajectories, strict=False):
        row["right"] = not one.fault and problem.check(one.said).right
    if args.json:
        print_json({"server": args.server, "model": args.model, "seconds": seconds, "rows": rows})
    else:
        for row in rows:
            _print(row)
        print(f"{sum(row['requests'] for row in rows)} requests in {seconds:.2f} s")
    return 2 if any(one.fault for one in trajectories) else 0


def _row(one: Any) -> dict[str, Any]:
    """What became of one prompt."""
    said = {name: reply.text for name, reply in one.replies.items()}
    return {
        "prompt": one.prompt, "said": said, "requests": len(one.prompts), "forks": one.forks,
        "tokens": one.tokens, "critical": one.critical, "fault": one.fault,
    }  # fmt: skip


def _print(row: dict[str, Any]) -> None:
    print(row["prompt"])
    for name, text in row["said"].items():
        print(f"  {name:8} {text}")
    right = {True: "right: ", False: "wrong: "}.get(row.get("right"), "")
    print(f"  {right}{row['tokens']} tokens, {row['critical']} on the critical path\n")
