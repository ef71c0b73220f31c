"""Serving predicted and scored from the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

from engine.core.config import from_dict, update
from engine.core.errors import BadInput
from engine.inference.serving_time.described import ServingRun
from engine.inference.serving_time.replica import Replicas
from workbench.cli.main import main
from workbench.cost_model.rows import sheet_of
from workbench.cost_model.tables import lines_of
from workbench.predictions.serving import predict
from workbench.predictions.serving_tables import described

RUN = 'model = "qwen3-30b-a3b"\n[cluster]\ndevice = "h200-sxm"\n[split]\ntensor = 2\n[load]\n'
LINES = "requests = 60\nrate = 20\nprompt = {median = 200}\nanswer = {median = 30}\n"
HEAD = "request,input_toks,output_toks,queued_s,first_token_s,last_token_s\n"
NOTE = "# Source: x/bench/examples/RTXPRO6000/Qwen3-32B/vllm/requests.jsonl\n"


def test_a_described_run_is_told_with_its_figures_and_flags(tmp_path: Path, capsys):
    file = tmp_path / "serve.toml"
    file.write_text(RUN + LINES, encoding="utf-8")
    assert main(["predict", str(file), "--json", "--set", "split.expert=true"]) == 0
    told = json.loads(capsys.readouterr().out)
    for name in ("step", "TTFT mean", "TPOT p99", "output tokens per second"):
        each = told["figures"][name]
        assert each["low"] < each["value"] < each["high"]
    assert sum(told["parts_s"].values()) == pytest.approx(told["figures"]["step"]["value"])
    assert {"experts", "all_reduce", "host"} <= set(told["parts_s"])
    assert told["figures"]["power, at most"]["value"] == 1400
    assert "energy of each output token, at most" in told["figures"]
    assert not any("cost" in name for name in told["figures"])  # no price was told
    notes = " ".join([*told["notes"], *told["commands"]])
    assert "measured in part: all else by constants of h100-sxm, intervals of devices left" in notes
    assert "--tensor-parallel-size 2" in notes and "--enable-expert-parallel" in notes
    assert "--ep-size 2" in notes


def test_a_price_becomes_a_cost_and_the_longest_part_a_sentence():
    few = {"load.requests": 20, "cluster.price": 3.6, "split.data": 2}
    found = predict(update(ServingRun(), few))
    cost = found.figures["cost of a million output tokens"]
    rate = found.figures["output tokens per second"]
    assert cost.value == pytest.approx(2 * 3.6 / 3600 * 1e6 / rate.value)
    assert cost.low <= cost.value <= cost.high
    assert found.sentence.startswith(f"{found.bound} take")
    assert any(line.startswith("vllm serve llama-3.1-8b ") for line in found.commands)


def test_what_takes_for_ever_has_no_price_and_is_no_fault(capsys):
    told = ["load.rate=1e-300", "load.requests=3", "cluster.price=1"]
    assert main(["predict", *[word for each in told for word in ("--set", each)], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["figures"]["requests per second"]["value"] < 1e-290


def test_requests_of_a_run_are_scored_and_steps_that_are_slower_seen(tmp_path: Path, capsys):
    run = from_dict(ServingRun, {"cluster": {"device": "a100-sxm-80gb"}, "load": {"requests": 40}})
    arrival, prompt, answer = run.load.drawn()
    times = Replicas(run).times(arrival, prompt, answer)
    first, last = arrival + times.ttft_R, arrival + times.latency_R
    report = {}
    for name, slower in (("same", 1.0), ("slow", 2.0)):
        file = tmp_path / f"{name}.csv"
        rows = [
            f"{n},{p},{a},{t},{t + slower * (f - t)},{t + slower * (e - t)}"
            for n, (p, a, t, f, e) in enumerate(
                zip(prompt, answer, arrival, first, last, strict=True)
            )
        ]
        file.write_text(HEAD + "\n".join(rows), encoding="utf-8")
        ask = ["check", "predictions", str(file), "--json", "--set", "cluster.device=a100-sxm-80gb"]
        assert main([*ask, "--set", "model=llama-3.1-8b"]) == 0
        told = json.loads(capsys.readouterr().out)
        report[name] = {row["group"].partition(",")[0]: row for row in told["report"]}
    assert abs(report["same"]["TPOT"]["bias"]) < 1e-6 and report["same"]["TPOT"]["covered"] == 1
    assert report["slow"]["TPOT"]["bias"] == pytest.approx(-0.5)
    assert report["slow"]["TPOT"]["covered"] < 0.1
    told = ["--set", "cluster.device=a100-sxm-80gb", "--set", "model=llama-3.1-8b", "--json"]
    host = ["cost", "host", str(tmp_path / "slow.csv"), "--out", str(tmp_path / "engine.toml")]
    assert main([*host, *told]) == 0
    found = json.loads(capsys.readouterr().out)
    assert abs(found["tpot_error"]) < 0.02
    assert found["per_step"] == pytest.approx(sum(times.parts.values()), rel=0.5)
    again = [*told, "--set", f"engine.name={tmp_path / 'engine.toml'}"]
    assert main(["check", "predictions", str(tmp_path / "slow.csv"), *again]) == 0
    rows = {r["what"]: r for r in json.loads(capsys.readouterr().out)["rows"]}
    assert abs(rows["TPOT mean"]["error"]) < 0.02


def test_which_run_a_table_is_of_stands_in_its_name_notes_and_neighbour(tmp_path: Path):
    meta = {"rtxpro6000": {"max_num_seqs": 128, "qwen3_32b_tp": 2, "kv": {"num_gpu_blocks": 77}}}
    (tmp_path / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    file = tmp_path / "rtxpro6000_qwen3_32b_requests.csv"
    file.write_text(NOTE + HEAD + "0,5,2,0,1,2\n", encoding="utf-8")
    run = described(list(lines_of(file)), file, {"engine.tokens": 4096})
    assert (run.model, run.cluster.device, run.split.tensor) == ("qwen3-32b", "rtx-pro-6000", 2)
    assert (run.engine.running, run.engine.blocks, run.engine.tokens) == (128, 77, 4096)
    assert sheet_of("RTXPRO6000") == "rtx-pro-6000"
    plain = tmp_path / "requests.csv"
    plain.write_text(HEAD + "0,5,2,0,1,2\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"cluster.device is told nowhere; say it: --set"):
        described(list(lines_of(plain)), plain, {})


def test_memory_leaves_blocks_or_says_why_not():
    run = from_dict(ServingRun, {"cluster": {"device": "rtx-4090"}})
    memory = Replicas(run).memory
    assert memory.blocks == pytest.approx(2588, rel=0.05), "of a real vLLM run on that device"
    big = from_dict(ServingRun, {"model": "qwen3-32b", "cluster": {"device": "rtx-4090"}})
    with pytest.raises(BadInput, match=r"leave no room for a cache.*: [\d,]+ bytes too few"):
        _ = Replicas(big).memory
    two = from_dict(ServingRun, {"split": {"pipeline": 2}, "load": {"requests": 20}})
    assert np.isfinite(Replicas(two).times(*two.load.drawn()).ttft_R).all()
