"""`workbench check cost-model` on made tables: errors counted, bad lines named, constants found."""

import json
from pathlib import Path

import numpy as np
import pytest

from engine.hardware import device
from engine.hardware.cost.constants import Constants, of_device
from engine.hardware.cost.model import CostModel
from engine.hardware.sheet import read
from workbench.cli.main import main
from workbench.cost_model.check import errors
from workbench.cost_model.fit import START, fit, quarter, start_of
from workbench.cost_model.leave_out import both
from workbench.cost_model.rows import Measured, sheet_of
from workbench.cost_model.simplex import lowest
from workbench.cost_model.tables import table
from workbench.cost_model.writing import toml

GEMM = "system,dtype,m,n,k,us,kernel"
ATTENTION = "system,phase,heads,kv_heads,head_dim,batch,isl,cached_step,us,kernel"
LAYER = "device,model,tp,num_tokens,attn_pre_proj_ms,mlp_act_ms"
NCCL = "system,nccl,op,gpus,message_size,us"


def made(folder: Path, *lines: str) -> str:
    path = folder / "made.csv"
    path.write_text("# Note: made up\n" + "\n".join(lines) + "\n")
    return str(path)


def test_a_table_that_is_twice_as_slow_is_half_predicted(tmp_path, capsys):
    model = CostModel(device("h100-sxm"), of_device("h100-sxm"))
    lines = [
        f"h100_sxm,bfloat16,{m},4096,4096,{2e6 * model.matmul(m, 4096, 4096).seconds},made"
        for m in (1, 64, 4096)
    ]
    assert main(["check", "cost-model", made(tmp_path, GEMM, *lines), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["device"], row["operator"], row["rows"]) == ("h100-sxm", "matmul", 3)
    assert row["median_error"] == pytest.approx(0.5) and row["bias"] == pytest.approx(-0.5)
    assert row["quantiles"]["0.5"] == pytest.approx(-0.5) and row["covered"] == 0.0


def test_every_layout_is_read(tmp_path, capsys):
    tables = [
        (ATTENTION, "b200_sxm,generation,32,8,128,4,1,1023,20.5,x"),
        (LAYER, "a100,Llama-2-7b-hf,2,64,0.04,0.005"),
        (NCCL, "h200_sxm,2.27,alltoall,8,1024,15.0"),
    ]
    for index, lines in enumerate(tables):
        folder = tmp_path / str(index)
        folder.mkdir()
        assert main(["check", "cost-model", made(folder, *lines)]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("b200-sxm", "decode", "swiglu", "collective", "h200-sxm"))


def test_layer_shapes_are_the_models(tmp_path):
    path = Path(made(tmp_path, LAYER, "a100,meta-llama/Llama-2-70b-hf,8,512,0.069,0.011"))
    product, gate = table(path)
    assert isinstance(product, Measured) and product.shape == (512, 1280, 8192, "float16")
    assert isinstance(gate, Measured) and gate.shape == ("swiglu", 512, 3584, 10752, "float16")
    head = "network,collective,num_workers,devices_per_node,bytes,median_ms"
    pairs = Path(made(tmp_path, head, "a100_pairwise_nvlink,all_reduce,4,4,1024,0.1"))
    assert "pairs alone" in table(pairs)[0].why


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ((GEMM, "a100_sxm,bfloat16,1,2,3,fast,x"), "made.csv:3: column 'us': 'fast' is no number"),
        ((GEMM, "a100_sxm,bfloat16,1,2,3,-4,x"), "column 'us': -4"),
        ((GEMM, "a100_sxm,bfloat16,1,2,3,nan,x"), "column 'us': nan"),
        ((GEMM, "a100_sxm,bfloat16,1.5,2,3,4,x"), "'m': 1.5 is no whole number"),
        ((GEMM, "a100_sxm,bfloat16,0,2,3,4,x"), "'m': 0"),
        ((GEMM, "a100_sxm,bfloat16,1,2,3"), "5 columns, not 7"),
        ((GEMM, "a100_sxm,,1,2,3,4,x"), "'dtype': empty"),
        ((ATTENTION, "a100_sxm,thinking,32,8,128,4,1,9,20,x"), "one of: context, generation"),
        (("a,b", "1,2"), "no known layout"),
        ((), "no rows"),
        ((GEMM, "warp9,bfloat16,1,2,3,4,x"), "'warp9' has no data sheet"),
    ],
)
def test_a_bad_line_is_one_line_and_exit_code_two(lines, says, tmp_path, capsys):
    assert main(["check", "cost-model", made(tmp_path, *lines)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_bad_words_are_one_line_and_exit_code_two(tmp_path, capsys):
    for words in (["cost-model"], ["cost-model", "none.csv"], ["flover", "--constants", "x.toml"]):
        assert main(["check", *words]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_rows_that_are_not_covered_are_counted(tmp_path, capsys):
    lines = ["warp9,bfloat16,1,2,3,4,x", "a100_sxm,bfloat16,1,4096,4096,24,x"]
    assert main(["check", "cost-model", made(tmp_path, GEMM, *lines), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == {
        "device 'warp9' has no data sheet": 1
    }


@pytest.mark.parametrize(
    ("name", "sheet"),
    [
        ("a100_sxm", "a100-sxm-80gb"),
        ("a100", "a100-sxm-80gb"),
        ("h100_pcie", "h100-pcie"),
        ("l40s", "l40s"),
        ("gh200_sxm", "gh200-96gb"),
        ("a100_dgx", "a100-sxm-80gb"),
        ("warp9", ""),
        ("rtx_pro_6000_server", "rtx-pro-6000"),
        ("RTX4090", "rtx-4090"),
        ("NVIDIA H200 SXM", "h200-sxm"),
        ("l40", ""),
        ("l4x", ""),
    ],
)
def test_tables_name_devices_their_own_way(name, sheet):
    assert sheet_of(name) == sheet


def rows_by(constants, seed: int) -> list[Measured]:
    """A table that these constants would measure, a little noisy, for every operator."""
    random = np.random.default_rng(seed)
    shapes: list[tuple[str, tuple, str]] = []
    for group in range(12):
        n = 512 * (group + 1)
        shapes += [("matmul", (m, n, 4096, "bfloat16"), f"matmul {n}") for m in (1, 64, 900)]
        shapes += [
            ("prefill", (1, 256 * k, 8 + group, 8, 128, "bfloat16"), f"p {n}") for k in (1, 9)
        ]
        shapes += [("decode", (1 + group, 900 * k, 8, 128, "bfloat16"), f"d {n}") for k in (1, 9)]
        size = 4.0**group
        shapes += [
            ("collective", (op, 8, 9 * size), f"{op}{n}") for op in ("all_reduce", "all_gather")
        ]
        for name in START.rows:
            shapes += [(name, (name, m, n, 2 * n, "float16"), f"{name}{n}") for m in (1, 3000)]
    rows = [Measured(op, "a100-sxm-80gb", shape, 1.0, group) for op, shape, group in shapes]
    times = np.exp(errors(rows, constants) + 0.01 * random.standard_normal(len(rows)))
    return [
        Measured(r.operator, r.device, r.shape, float(t), r.group)
        for r, t in zip(rows, times, strict=True)
    ]


def test_a_fit_finds_what_made_the_table_and_holds_rows_out(tmp_path):
    truth = START.model_copy(update={"matmul": START.matmul.model_copy(update={"rate": 0.9})})
    rows = rows_by(truth, 1)
    assert {quarter(row) for row in rows} == {0, 1, 2, 3}
    found = fit(rows, "made up", start_of("a100-sxm-80gb"), rounds=40)
    away = np.abs(errors([r for r in rows if quarter(r) == 0], found))
    assert np.median(away) < 0.1
    assert found.intervals["matmul"].low < 0 < found.intervals["matmul"].high
    path = tmp_path / "operators.toml"
    path.write_text(toml(found))
    again = read(Constants, path)
    assert again.matmul.rate == pytest.approx(found.matmul.rate, rel=1e-3)


@pytest.mark.parametrize(("m", "n", "k", "us"), [(1, 8192, 8192, 96.9), (1024, 8192, 8192, 526.6)])
def test_shipped_constants_predict_an_a100(m, n, k, us):
    """Two rows of aiconfigurator's A100 table, as facts."""
    told = CostModel(device("a100-sxm-80gb"), of_device("a100-sxm-80gb")).matmul(m, n, k)
    assert told.low <= us * 1e-6 <= told.high


def test_the_simplex_finds_a_minimum():
    found = lowest(lambda p: float((p[0] - 2) ** 2 + 3 * (p[1] + 1) ** 2), np.zeros(2))
    assert found == pytest.approx([2, -1], abs=1e-2)


def test_profiles_and_published_rates_have_layouts(tmp_path, capsys):
    note = "# Source: x/perf/RTX4090/meta-llama/Llama-3.1-8B/bf16/tp1/x.csv"
    calls = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us"
    tables = [
        (note, "layer,tokens,time_us", "qkv_proj,64,60.1", "act_fn,64,3.2", "moe,64,3.2"),
        (note, "layer,sequences,time_us", "lm_head,64,1211", "sampler,64,46"),
        (note, calls, "0,0,16,1024,99", "512,0,0,0,41", "512,2048,0,0,166", "16,0,16,1024,160"),
        (
            "dtype,accelerator,mamf_tflops,best_shape_MxNxK",
            "BF16,NVIDIA A100 SXM,271,512x512x512",
        ),
        ("what,system,gpus,payload_bytes,busbw_GBps", "all_reduce busbw,8x H200 node,8,8e9,473"),
        (
            "gpu,pass,causal,head_dim,impl,seqlen,tflops",
            "H100 80GB SXM5,fwd,1,128,FlashAttention-2,4096,319",
            "H100 80GB SXM5,fwd+bwd,1,128,FlashAttention-2,4096,294",
        ),
    ]
    told = []
    for index, lines in enumerate(tables):
        folder = tmp_path / str(index)
        folder.mkdir()
        assert main(["check", "cost-model", made(folder, *lines), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        told += [(row["device"], row["operator"]) for row in found["rows"]]
    ours = ("chunk", "decode", "mixed", "prefill", "swiglu", "matmul")
    assert {("rtx-4090", operator) for operator in ours} <= set(told)
    assert {
        ("a100-sxm-80gb", "matmul"),
        ("h200-sxm", "collective > 1 MiB"),
        ("h100-sxm", "prefill"),
    } <= set(told)


def test_prompts_whose_keys_lie_ready_take_less(tmp_path):
    head = "system,phase,heads,kv_heads,head_dim,batch,isl,cached_step,us"
    row = "h100,context,32,8,128,16,128,0,20"
    laid = table(Path(made(tmp_path, head, row)))
    ready = table(Path(made(tmp_path, f"{head},laid", f"{row},0")))
    again = table(Path(made(tmp_path, f"{head},laid", f"{row},1")))
    found = of_device("h100-sxm")
    a, b, c = (float(np.exp(errors(rows, found)[0])) for rows in (laid, ready, again))
    assert b < 0.9 * a and c == a, "as FlashAttention's own benchmark has them"


def test_routes_by_groups_are_not_balanced_by_balanced_scores(tmp_path):
    head = "system,dtype,hidden,inter,topk,experts,moe_tp,moe_ep,distribution,tokens,us"
    rows = [
        f"h100_sxm,fp8,7168,2048,8,256,1,1,{how},64,500" for how in ("balanced", "power_law_1.2")
    ]
    rows.append("h100_sxm,fp8,2048,768,8,128,1,1,balanced,64,100")
    found = table(Path(made(tmp_path, head, *rows)))
    assert [isinstance(row, Measured) for row in found] == [False, True, True]
    assert "go by groups" in found[0].why


def test_a_profile_that_does_not_say_of_what_is_refused(tmp_path, capsys):
    assert main(["check", "cost-model", made(tmp_path, "layer,tokens,time_us", "act_fn,1,2")]) == 2
    assert "of which device and model?" in capsys.readouterr().err


def test_parts_and_whole_devices_are_held_out():
    rows = rows_by(START, 2)
    rows = [row for row in rows if row.operator == "decode"]
    other = [Measured(r.operator, "h100-sxm", r.shape, 0.5 * r.seconds, r.group) for r in rows]
    told = both([*rows, *other], rounds=5)
    assert set(told) == {("a100-sxm-80gb", "decode"), ("h100-sxm", "decode")}
    for line in told.values():
        assert line["left_out_error"] > line["own_error"] and 0 <= line["own_covered"] <= 1
