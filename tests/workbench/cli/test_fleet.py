"""`workbench fleet`: a fleet from a file and a trace, figures, and errors that name the line."""

import json

import pytest

from workbench.cli.main import main

FLEET = """replicas = 2
router = "prefix_aware"
[engine]
pages = 4000
[engine.workload]
count = 6
"""
TRACE = """TIMESTAMP,ContextTokens,GeneratedTokens
2026-01-01 00:00:00.0,40,3
2026-01-01 00:00:00.5,x,3
2026-01-01 00:00:01.0,60,2
"""


def told(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(["fleet", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_file_and_a_trace_make_a_run(tmp_path, capsys):
    described, trace, kept = (tmp_path / name for name in ("f.toml", "t.csv", "f.run"))
    described.write_text(FLEET)
    trace.write_text(TRACE)
    code, _, err = told(capsys, str(described), "--trace", str(trace))
    assert code == 2 and f"{trace}, line 3" in err
    code, out, err = told(
        capsys, str(described), "--trace", str(trace), "--lenient", "--save", str(kept), "--json"
    )
    found = json.loads(out)
    assert (code, found["finished"], found["tokens"]) == (0, 2, 5)
    assert "left out 1 line that cannot be read" in err
    assert kept.is_file()


@pytest.mark.parametrize(
    "text, words",
    [
        (FLEET + "speeed = 2\n", "line 7"),
        (FLEET.replace("4000", "many"), "line 4"),
        ("replicas = = 3", "line 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path, capsys, text, words):
    described = tmp_path / "f.toml"
    described.write_text(text)
    code, _, err = told(capsys, str(described))
    assert code == 2 and words in err and err.count("\n") == 1, err


def test_an_objective_that_is_missed_says_what_binds(capsys):
    tight = ("--set", "objective.ttft=0.05", "--set", "objective.tpot=0.02")
    asked = ("--set", "replicas=1", "--set", "engine.workload.count=60")
    code, out, _ = told(capsys, *tight, *asked, "--set", "engine.workload.rate=200")
    out = " ".join(out.split())  # wherever a narrow terminal breaks its lines
    assert code == 0 and "by the first token" in out and "waiting for a place (more" in out
    code, out, _ = told(capsys, *tight, *asked, "--set", "engine.workload.rate=1")
    assert "computing the prompt (a faster" in " ".join(out.split())


def test_hits_of_a_trace(capsys):
    code, out, _ = told(capsys, "--hits", "mooncake-like.jsonl", "--count", "100", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["capacities"][-1]["lru"] == found["found"] / found["total"]


def test_a_death_says_what_it_cost_and_how_long_it_took(capsys):
    killed = ("--set", "faults.kill=1", "--set", "faults.kill_at=0.5")
    asked = ("--set", "replicas=2", "--set", "engine.workload.count=40")
    code, out, _ = told(capsys, *asked, *killed, "--json")
    found = json.loads(out)
    (died, lost), (recovered, after) = found["faults"]
    assert (code, died, recovered) == (0, "died", "recovered")
    assert "tokens lost" in lost and "run again" in after
    low, high = found["interval"]["ttft.p50"]
    assert low < found["ttft"]["p50"] < high and found["interval"]["step"][0] < 1
