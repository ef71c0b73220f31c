"""Predictions from the command line: of a described run, and against a table of measured ones."""

import json
from pathlib import Path

import pytest

from engine.core.errors import BadInput
from engine.core.run import Run
from engine.training.step_time.described import TrainingRun, read
from widgets.knobs.config_text import spelled
from workbench.catalogue import study
from workbench.cli.main import main
from workbench.cost_model.rows import Cells
from workbench.parallelism_split import schedule_knobs
from workbench.predictions.tables import scored
from workbench.predictions.training_columns import described

RUN = 'model = "llama-3.1-8b"\n[cluster]\ndevices = 1024\n[recipe]\nsequence = 8192\n'
TABLE = """# made up
model,gpu,gpus,seq_len,microbatch,global_batch,dtype,act_ckpt,tokens_per_s_per_gpu
llama-3.1-8b,H100,8,8192,1,8,bf16,full,{rate}
llama-3.1-8b,NoSuchDevice,8,8192,1,8,bf16,full,9000
"""


def test_a_described_run_is_told_with_its_parts(tmp_path: Path, capsys):
    file = tmp_path / "run.toml"
    file.write_text(RUN, encoding="utf-8")
    assert main(["predict", str(file), "--json", "--set", "split.tensor=8"]) == 0
    told = json.loads(capsys.readouterr().out)
    step = told["figures"]["step"]
    assert step["low"] < step["value"] < step["high"] and told["grade"] == "modelled"
    assert sum(told["parts_s"].values()) == pytest.approx(step["value"])
    assert told["bound"] in told["parts_s"] and "no training run" in told["notes"][0]
    assert main(["predict", str(file)]) == 0
    assert "where the time goes" in capsys.readouterr().out


def test_a_table_is_scored(tmp_path: Path, capsys):
    file = tmp_path / "runs.csv"
    file.write_text(TABLE.format(rate=1), encoding="utf-8")
    ask = ["check", "predictions", str(file), "--json", "--set", "recipe.compiled=true"]
    assert main(ask) == 0
    slow = json.loads(capsys.readouterr().out)["rows"][0]
    assert slow["measured"] == 8192 and slow["error"] == pytest.approx(-1, abs=0.01)
    rate = 8192 / slow["value"]
    file.write_text(TABLE.format(rate=rate), encoding="utf-8")
    assert main(ask) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["report"][0]["covered"] == 1 and abs(told["report"][0]["bias"]) < 1e-9
    assert told["left_out"] == {"device 'NoSuchDevice' has no data sheet": 1}
    assert main(["check", "predictions", str(file)]) == 0
    assert "furthest off" in capsys.readouterr().out


def test_published_layouts_are_read(tmp_path: Path, capsys):
    megatron = tmp_path / "megatron.csv"
    megatron.write_text(
        "model,params_B,attention_heads,hidden,layers,tp,pp,gpus,global_batch,tflops_per_gpu,"
        "pct_of_312,microbatch,virtual_pipeline_layers_per_stage\n"
        "small,1.7,16,2048,24,2,2,8,64,137,44,4,3\n",
        encoding="utf-8",
    )
    foundry = tmp_path / "foundry.csv"
    foundry.write_text(
        "model,d_model,n_heads,n_layers,seq_len,gpus,gpu,microbatch,global_batch,"
        "tokens_per_s_per_gpu,precision,mp_mode,sharding,act_ckpt,num_params\n"
        "small,1024,16,24,2048,8,a100_80gb,4,64,50000,amp_bf16,DEFAULT,FULL_SHARD,True,1\n",
        encoding="utf-8",
    )
    assert main(["check", "predictions", str(megatron), str(foundry), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["group"] for row in rows] == ["table 1, a100-sxm-80gb", "small, a100-sxm-80gb"]
    assert rows[1]["measured"] == 64 * 2048 / 8 / 50000


def test_columns_are_read_by_their_words(tmp_path: Path, capsys):
    file = tmp_path / "runs.csv"
    file.write_text(
        "Model,System,#GPUs,GBS,MBS,Seq Length,FSDP,TP,PP,VP,Precision,recipe.overlap,"
        "Tokens/sec/GPU\n"
        "Llama3 8B,DGX-H100,8,128,1,8192,1,1,1,-,FP8,false,12000\n"
        "Llama3.1 70B,DGX-H100,64,128,1,8192,0,4,4,3,BF16,true,1500\n"
        "Llama3.1 70B,DGX-H100,60,128,1,8192,0,4,4,5,BF16,true,1500\n",
        encoding="utf-8",
    )
    assert main(["check", "predictions", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["measured"] for row in told["rows"]] == [
        128 * 8192 / 8 / 12000,
        128 * 8192 / 64 / 1500,
    ]
    assert "b1 none" in told["rows"][1]["what"] and len(told["left_out"]) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n", "no known layout"),
        ("model,gpu,gpus,step_s\nllama-9,H100,8,1\n", "model 'llama-9' is not"),
        ("model,gpu,gpus,step_s\nllama-3.1-8b,H100,many,1\n", "cluster.devices"),
    ],
)
def test_bad_tables_are_told_in_a_line(tmp_path: Path, capsys, text, told):
    file = tmp_path / "runs.csv"
    file.write_text(text, encoding="utf-8")
    assert main(["check", "predictions", str(file)]) == 2
    said = capsys.readouterr().err
    assert told in said and len(said.splitlines()) == 1


def test_a_table_of_megatron_core_is_read_as_its_recipes_run(tmp_path: Path, capsys):
    file = tmp_path / "bridge.csv"
    file.write_text(
        "Model,#-GPUs,Precision,GBS,MBS,Sequence Length,FSDP,TP,PP,CP,VP,EP,System,"
        "Tokens / sec / GPU\n"
        "Qwen3_30B_a3B,16,FP8-CS,512,2,4096,0,1,2,1,24,8,DGX-H100,5275\n"
        "DeepSeekV3,256,MXFP8,4096,1,4096,0,1,4,1,4,64,DGX-GB200,3955\n",
        encoding="utf-8",
    )
    assert main(["check", "predictions", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    small, large = told["rows"]
    assert not told["left_out"] and small["error"] < 0  # 24 chunks a rank are a schedule, too
    assert abs(large["error"]) < 0.25 and large["covered"]
    assert (
        main(["check", "predictions", str(file), "--json", "--set", "recipe.dispatch=copies"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["rows"][1]["value"] >= large["value"]


@pytest.mark.parametrize(
    ("model", "device", "sent"),
    [("GPT OSS 120B", "H100", "copies"), ("DeepSeekV3", "H100", "once"),
     ("Qwen3_235B_a22B", "H100", "copies"), ("Qwen3_235B_a22B", "GB200", "once")],
)  # fmt: skip
def test_tokens_go_as_a_recipe_sends_them_unless_a_column_says(model, device, sent):
    line = {
        "model": model, "system": device, "gpus": "256", "tp": "1", "pp": "4", "vp": "1",
        "ep": "8", "gbs": "1024", "mbs": "1", "sequence_length": "4096",
    }  # fmt: skip
    run = described(Cells("here", line, ""), {}, {}, {})
    assert isinstance(run, TrainingRun) and run.recipe.dispatch == sent
    told = described(Cells("here", {**line, "recipe.dispatch": "once"}, ""), {}, {}, {})
    assert isinstance(told, TrainingRun) and told.recipe.dispatch == "once"


@pytest.mark.parametrize("split", ["pipeline = 4\n", "pipeline = 2\nchunks = 2\ntensor = 2\n"])
def test_one_file_is_predicted_played_and_split_otherwise(tmp_path: Path, capsys, split):
    """The schedule's last moment is the step that is predicted, head and embedding included."""
    file = tmp_path / "run.toml"
    file.write_text(
        'model = "qwen3-8b"\n[architecture]\nnum_hidden_layers = 6\n[cluster]\ndevices = 8\n'
        f'[split]\nshard = "optimizer"\n{split}[recipe]\nbatch = 16\nrecompute = "full"\n',
        encoding="utf-8",
    )
    assert main(["predict", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    knobs = schedule_knobs(read(file))
    assert all(f"{path}=" in told["schedule"] for path in knobs)
    step, chosen = told["figures"]["step"]["value"], study("megatron")
    config = chosen.configured(knobs)
    assert Run.execute(chosen.driver, config).log.duration == pytest.approx(step)
    # As an address and a command line spell them.
    assert chosen.configured({path: spelled(value) for path, value in knobs.items()}) == config
    assert main(["run", "megatron", "--described", str(file), "--knobs", "--json"]) == 0
    listed = {knob["path"]: knob["value"] for knob in json.loads(capsys.readouterr().out)}
    assert (listed["passes"], listed["ranks"]) == ("described", config.ranks)
    assert main(["parallelism", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fitting"] > 1


STRANGE = ("\x00", "²", "١٢", "9" * 5000, "nan", "abc", "-1", "[]", " ")
SHAPED = {
    "gpu": "A100", "gpus": "8", "hidden": "1024", "layers": "24", "heads": "16", "seq_len": "2048",
    "microbatch": "1", "global_batch": "8", "tp": "2", "pp": "1", "fsdp": "0", "dtype": "bf16",
    "tokens_per_s_per_gpu": "9000",
}  # fmt: skip


@pytest.mark.parametrize("column", ["gpus", "hidden", "seq_len", "tp", "pp", "fsdp"])
def test_a_strange_cell_is_a_line_or_a_run(tmp_path: Path, column):
    file = tmp_path / "runs.csv"
    for cell in STRANGE:
        row = ",".join((SHAPED | {column: cell}).values())
        file.write_text(",".join(SHAPED) + "\n" + row + "\n", encoding="utf-8")
        try:
            scored(file, {})
        except BadInput as fault:
            assert "\n" not in str(fault)
