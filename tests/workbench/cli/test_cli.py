"""The command line: exit codes, one line for bad input, JSON alone on stdout."""

import json
import os
import socket
import subprocess
import sys

import pytest

from engine.core.file import load
from engine.core.paths import datasets
from tests.workbench.toy import TOY
from workbench.cli import app as cli_app
from workbench.cli import bench as cli_bench
from workbench.cli import check as cli_check
from workbench.cli import main as cli
from workbench.cli import run as cli_run
from workbench.cli.main import main

README, FINDINGS, MAPS = (str(datasets() / n) for n in ("README.md", "findings.json", "regimes"))


@pytest.fixture
def toy(monkeypatch):
    """The toy study in place of any other."""
    for module in (cli_run, cli_check):
        monkeypatch.setattr(module, "study", lambda slug: TOY)


def fault(capsys) -> str:
    """The one line a command complained with."""
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if line.startswith("workbench: ")]
    assert len(lines) == 1, said.err
    assert "Traceback" not in said.err
    assert said.out == ""
    return lines[0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "no-such-system"], "no such system"),
        (["check", "no-such-system"], "no such system"),
        (["open", "missing.run"], "no such file"),
        (["trace", "missing.run"], "no such file"),
        (["bench", "no-such-bench"], "no such benchmark"),
        (["notebook", "missing.ipynb"], "no such file"),
        (["notebook", "any.ipynb", "--timeout", "nan"], "--timeout"),
        (["trace", ""], "not a plain file but a folder"),
        (["generate", "def", "--save", "no/folder/a.run"], "no folder"),
        (["--port", "99999999"], "not a port"),
        (["run", "megatron", "--at", "40%"], "--at: says something of --picture"),
        (["fleet", "--speed", "4"], "--speed: says something of --trace"),
        (["design", "--count", "4"], "--count: says something of --trace"),
        (["check", "flover", "--save", "no/folder/a.json"], "no folder"),
        (["check", "flover", "--save", README], "holds no findings"),
        (["check", "flover", "--regimes", "--save", README], "no such folder"),
        (["check", "flover", "--breaks", "--save", "a.json"], "not recorded"),
        (["check", "flover", "--seed", "1", "--save", FINDINGS], "shipped record"),
        (["check", "flover", "--regimes", "--set", "a=1", "--save", MAPS], "shipped record"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(words, says, capsys):
    assert main(words) == 2
    assert says in fault(capsys)


@pytest.mark.parametrize(
    "words",
    [
        ["bogus"],
        ["run"],
        ["run", "flover", "--seed", str(2**63)],
        ["catalogue", "--bogus"],
        ["--port", "x"],
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_two(words, capsys):
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 2
    fault(capsys)


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ("count=0", "greater than or equal to 1"),
        ("count=many", "integer"),
        ("speed=3", "no such knob"),
        ("count", "--set"),
    ],
)
def test_a_bad_knob_value_is_bad_input(toy, pair, says, capsys):
    assert main(["run", "flover", "--set", pair]) == 2
    assert says in fault(capsys)


@pytest.mark.parametrize("words", [["open", "a\x1b[2Jb\u202e.run"], ["run", "x\x9b" * 5000]])
def test_what_a_terminal_would_obey_is_written_out_and_a_complaint_has_an_end(words, capsys):
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and len(said) < 8000
    assert not any(mark in said for mark in "\x1b\x9b\u202e") and "\\x" in said


def test_a_port_in_use_is_one_line(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["--port", str(port), "--no-browser"]) == 2
    assert f"port {port}" in fault(capsys)


def test_a_foreign_file_is_no_run(tmp_path, capsys):
    path = tmp_path / "foreign.run"
    path.write_bytes(b"PAR1 and nothing else")
    assert main(["trace", str(path)]) == 2
    assert "not a whole run file" in fault(capsys)


def test_a_missing_optional_package_names_the_install(monkeypatch, capsys):
    def absent(args):
        raise ModuleNotFoundError("No module named 'llama_cpp'", name="llama_cpp")

    monkeypatch.setattr(cli_bench, "run", absent)
    assert main(["bench"]) == 2
    assert "pip install llama_cpp" in fault(capsys)


def test_a_run_prints_its_figures_as_json(toy, tmp_path, capsys):
    path = tmp_path / "toy.run"
    words = ["run", "flover", "--set", "count=7", "--seed", "3", "--json", "--save", str(path)]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["config"] == {"count": 7, "wait": 0.0, "order": "up"}
    assert found["serving"]["tokens"] == 7
    assert found["closed"] == "finished"
    assert found["peaks"]["engine.running"] == 6
    log = load(path)
    assert log.opened.seed == 3
    assert log.opened.study == "flover"


def test_a_run_prints_its_figures_for_people(toy, capsys):
    assert main(["run", "flover", "--preset", "down"]) == 0
    said = capsys.readouterr().out
    assert "1 of 1" in said
    assert "modelled" in said


def test_knobs_are_listed(toy, capsys):
    assert main(["run", "flover", "--knobs", "--json"]) == 0
    assert [k["path"] for k in json.loads(capsys.readouterr().out)] == ["count", "wait", "order"]


def test_a_trace_is_written_beside_the_run(toy, tmp_path, capsys):
    path = tmp_path / "toy.run"
    main(["run", "flover", "--save", str(path)])
    assert main(["trace", str(path)]) == 0
    trace = json.loads((tmp_path / "toy.json").read_text())
    assert any(event["ph"] == "X" for event in trace["traceEvents"])


def test_a_trace_is_broken_down_by_what_its_accelerator_did(tmp_path, capsys):
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 0, "dur": 5}
    path, none = tmp_path / "gpu.json", tmp_path / "host.json"
    path.write_text(json.dumps({"traceEvents": [kernel, {**kernel, "ts": 15}]}))
    assert main(["trace", str(path), "--breakdown"]) == 0
    assert "gemm" in (text := capsys.readouterr().out) and "50 %" in text
    assert main(["trace", str(path), "--breakdown", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["devices"][0]["idle"] == pytest.approx(10e-6) and told["kernels"][0]["count"] == 2
    none.write_text(json.dumps({"traceEvents": [{**kernel, "dur": 0}]}))
    assert main(["trace", str(none), "--breakdown"]) == 0
    assert "–" in capsys.readouterr().out  # shares of nothing
    none.write_text(json.dumps({"traceEvents": [{**kernel, "cat": "cpu_op"}]}))
    assert main(["trace", str(none), "--breakdown"]) == 2
    assert "no kernels" in fault(capsys)


def test_an_unwritable_place_is_one_line(toy, tmp_path, capsys):
    path = tmp_path / "no" / "such" / "folder" / "toy.run"
    assert main(["run", "flover", "--save", str(path)]) == 2
    assert "cannot write" in fault(capsys)


def test_train_gives_its_folder_as_a_path(monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(
        "engine.recipes.language_models.reproduce", lambda *words: given.extend(words)
    )
    assert main(["train", "stdlib-5m", "--out", str(tmp_path / "new")]) == 0
    assert given[1] == tmp_path / "new"


def test_every_command_is_found_and_explains_itself(capsys):
    found = cli.commands()
    wanted = "app catalogue run check bench compare notebook open trace train generate serve"
    assert set(wanted.split()) - {"app"} <= set(found)
    for name in found:
        with pytest.raises(SystemExit) as left:
            main([name, "--help"])
        assert left.value.code == 0
        assert "usage: workbench" in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys):
    from importlib.metadata import version

    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"workbench {version('parallel-workbench')}\n"


def test_one_system_is_no_plural(capsys):
    assert main(["catalogue", "--search", "flover"]) == 0
    assert "\n1 system, " in capsys.readouterr().out


def test_help_shows_examples(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "workbench run flover" in capsys.readouterr().out
    assert cli_app.PORT == 5006


def test_the_command_line_starts_without_torch_or_panel():
    heavy = "('torch', 'panel', 'numba', 'bokeh', 'triton')"
    code = "import sys, workbench.cli.main as c; c.parser(); "
    code += f"print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


MISSING = {
    "transformers": ["bench", "decode"],
    "nbclient": ["notebook", "any.ipynb"],
    "panel": ["--no-browser", "--port", "5999"],
}
WITHOUT = """
import contextlib, io, json, sys
from workbench.cli.main import main
done = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    done.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(done))
"""


@pytest.fixture(scope="module")
def without():
    """Exit code, output and complaint of commands, by their first word, in one process in which
    none of these packages is installed."""
    asked = [*MISSING.values(), ["bench", "--json"]]
    code = "".join(f"import sys; sys.modules[{name!r}] = None\n" for name in MISSING) + WITHOUT
    words = [sys.executable, "-c", code, json.dumps(asked)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return dict(zip([*MISSING, "bench"], json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("package", MISSING)
def test_a_package_that_is_really_missing_is_one_line_and_exit_code_two(package, without):
    code, out, err = without[package]
    assert code == 2, err
    assert f"needs the package {package!r}" in err
    assert f"pip install {package}" in err
    assert "Traceback" not in err and err.count("\n") == 1 and out == ""


def test_benchmarks_are_listed_where_one_cannot_run(without):
    about = {row["name"]: row["about"] for row in json.loads(without["bench"][1])}
    assert "pip install transformers" in about["decode"]
    assert "pip install" not in about["scheduler"]


@pytest.mark.parametrize("words", [["plan", "--help"], ["plan", "1f1b", "--set", "ranks=2"]])
def test_a_terminal_of_few_characters_gets_the_others_written_out(words):
    """As `LC_ALL=C` on some machines, and a pipe on others."""
    came = subprocess.run(
        [sys.executable, "-c", "from workbench.cli.main import command; command()", *words],
        env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, timeout=300,
    )  # fmt: skip
    assert came.returncode == 0 and b"Traceback" not in came.stderr
    assert came.stdout and came.stdout.isascii()
