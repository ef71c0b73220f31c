"""`workbench fork`: threads on a server that knows nothing of them."""

import json

import pytest

from engine.core.config import update
from engine.reasoning.fork_join.fork_join import ForkJoinConfig
from tests.workbench.api.asking import served
from workbench.cli.main import main
from workbench.live.live import LiveEngine


@pytest.fixture(scope="module")
def address():
    """Our own API over the model of sums."""
    config = update(ForkJoinConfig().serving(), {"pages": 512})
    with served(LiveEngine(config, "part-sums-500k").start().wait()) as port:
        yield f"http://127.0.0.1:{port}/v1"


def test_problems_are_solved_by_threads_of_any_server(address, capsys):
    assert main(["fork", "--problems", "2", "--server", address, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for row in found["rows"]:
        assert row["right"] and row["forks"] == 1 and row["requests"] == 2 + 4
        assert row["critical"] < row["tokens"]


def test_a_prompt_is_printed_lane_by_lane_and_what_is_left_out_is_said(address, capsys):
    words = ["fork", "Aa2b5;Bc8d6;Ce1f3;<Parallel>", "--server", address, "--set", "threads=2"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "p0.1 " in said.out and "p0.2 " in said.out and "p0.3" not in said.out
    assert "on the critical path" in said.out
    assert "a fork may have 2 threads; without 3" in said.err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ([], "either a prompt or --problems"),
        (["x", "--problems", "1"], "either a prompt or --problems"),
        (["--problems", "0"], "problems"),
        (["x", "--server", "ftp://there"], "no address"),
        (["x", "--server", "http://[::1"], "no address"),
        (["x", "--server", "http://there:99999"], "no address"),
        (["x", "--server", "http://127.0.0.1:1/v1"], "cannot be asked"),
        (["x", "--set", "threads=0"], "threads"),
    ],
)
def test_what_cannot_be_is_one_line(more, says, capsys):
    assert main(["fork", *more]) == 2
    said = capsys.readouterr().err.strip()
    assert says in said and said.startswith("workbench: ") and "\n" not in said
