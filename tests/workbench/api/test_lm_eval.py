"""lm-eval through the server beside its own `hf` model on the same folder.

The same answers, choices and accuracy; log-likelihoods, which two programs sum, within 1e-3 nats.
One task of log-likelihoods and one of answers, from a file written here. lm-eval is no dependency:
where it is not installed this is skipped, and said so.
"""

import json

import pytest

from engine.core.paths import dataset
from engine.inference.config import InferenceConfig
from tests.workbench.api.asking import served
from workbench.live.live import LiveEngine

pytestmark = pytest.mark.slow
MODEL = "stdlib-5m"
ROWS = [
    ("import os\nimport ", ["sys", "zebra", "json"], 0),
    ("def __init__(self", ["):", ", name", "]]"], 0),
    ("    return ", ["None", "while", "import"], 0),
    ("class Error(", ["Exception", "5", "return"], 0),
    ("for i in ", ["range", "def", ")"], 0),
    ("if x is not ", ["None", "yes", "import"], 0),
]
CHOICE = """task: tiny_choice
dataset_path: json
dataset_kwargs: {data_files: {test: FILE}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{text}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{label}}"
target_delimiter: ""
metric_list: [{metric: acc}, {metric: acc_norm}]
"""
ANSWER = """task: tiny_answer
dataset_path: json
dataset_kwargs: {data_files: {test: FILE}}
test_split: test
output_type: generate_until
doc_to_text: "{{text}}"
doc_to_target: "{{choices[0]}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 12, do_sample: false}
metric_list: [{metric: exact_match}]
"""


def test_scores_are_those_of_its_own_model(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    lm_eval = pytest.importorskip("lm_eval")
    from lm_eval.tasks import TaskManager

    rows = [{"text": text, "choices": choices, "label": label} for text, choices, label in ROWS]
    file = tmp_path / "rows.json"
    file.write_text("\n".join(map(json.dumps, rows)))
    for name, text in (("choice", CHOICE), ("answer", ANSWER)):
        (tmp_path / f"{name}.yaml").write_text(text.replace("FILE", str(file)))
    folder = str(dataset(f"models/{MODEL}"))
    common = {"tasks": ["tiny_choice", "tiny_answer"], "log_samples": True, "bootstrap_iters": 0}
    common["task_manager"] = TaskManager(include_path=str(tmp_path), include_defaults=False)
    live = LiveEngine(InferenceConfig(model=MODEL)).start()
    live.wait()
    with served(live) as port:
        where = f"http://127.0.0.1:{port}/v1/completions"
        asked = f"model={MODEL},base_url={where},tokenizer={folder},num_concurrent=1,max_length=512"
        ours = lm_eval.simple_evaluate("local-completions", model_args=asked, **common)
    own = f"pretrained={folder},dtype=float32,device=cpu"
    theirs = lm_eval.simple_evaluate("hf", model_args=own, **common)
    assert (
        ours["results"]["tiny_choice"]["acc,none"] == theirs["results"]["tiny_choice"]["acc,none"]
    )
    for task in common["tasks"]:
        pairs = zip(ours["samples"][task], theirs["samples"][task], strict=True)
        for mine, right in pairs:
            if task == "tiny_answer":
                assert mine["resps"] == right["resps"]
                continue
            for one, other in zip(mine["filtered_resps"], right["filtered_resps"], strict=True):
                assert one[0] == pytest.approx(other[0], abs=1e-3)
                assert one[1] == other[1], "whether it is what the model would say"
