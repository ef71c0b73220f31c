"""inference-lab as a peer of the simulator's bench: a simulator in Rust, as WebAssembly in node.

Played where `npm install @doublewordai/inference-lab` was run in the folder that the bench is
started in. Its requests share no prefix, it keeps no tree of them, and its lengths are not cut.
"""

import json
import math
import shutil
import subprocess
from typing import Any

PACKAGE = "@doublewordai/inference-lab"
SECONDS = 600  # for one run
SCRIPT = f"""
import {{ readFileSync }} from "node:fs";
import {{ createRequire }} from "node:module";
import {{ initSync, run_simulation }} from "{PACKAGE}";
const found = createRequire(process.cwd() + "/").resolve("{PACKAGE}");
initSync({{ module: readFileSync(found.replace(/\\.js$/, "_bg.wasm")) }});
const config = readFileSync(0, "utf8");
const before = process.cpuUsage();
const {{ metrics, distributions }} = run_simulation(config);
const {{ user, system }} = process.cpuUsage(before);
const mean = all => all.reduce((sum, one) => sum + one, 0) / all.length;
console.log(JSON.stringify({{
  seconds: (user + system) / 1e6, requests: metrics.completed_requests,
  prompt: mean(distributions.input_lengths), answer: mean(distributions.output_lengths),
}}));
"""


def missing() -> str:
    """What it lacks here; empty where it can be played."""
    if shutil.which("node") is None:
        return f"{PACKAGE}: skipped, node is not installed"
    find = [
        "node",
        "-e",
        f"require('node:module').createRequire(process.cwd() + '/').resolve('{PACKAGE}')",
    ]
    if subprocess.run(find, capture_output=True, check=False).returncode:
        return f"{PACKAGE}: skipped, not installed here (npm install {PACKAGE})"
    return ""


def measure(
    count: int, rate: float, prompt: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    """`count` requests at `rate` a second of one replica, an 8B model on an H100, with log-normal
    lengths (median, spread): a row of the bench, or what went wrong under `error`."""
    config = {
        "hardware": {
            "name": "H100", "compute_flops": 989e12, "memory_bandwidth": 3.35e12,
            "memory_capacity": 80_000_000_000, "kv_cache_capacity": 50_000_000_000,
            "gpu_memory_utilization": 0.9, "bytes_per_param": 2,
        },
        "model": {
            "name": "llama-3.1-8b", "num_parameters": 8_030_000_000, "num_layers": 32,
            "hidden_dim": 4096, "num_heads": 32, "num_kv_heads": 8, "max_seq_len": 131_072,
        },
        "scheduler": {
            "max_num_batched_tokens": 2048, "max_num_seqs": 128, "policy": "fcfs",
            "enable_chunked_prefill": True, "long_prefill_token_threshold": 0,
            "max_num_partial_prefills": 1, "block_size": 16,
        },
        "workload": {
            "arrival_pattern": "poisson", "arrival_rate": rate, "num_requests": count, "seed": 0,
            "input_len_dist": _lengths(prompt), "output_len_dist": _lengths(answer),
        },
        "simulation": {"log_interval": 1_000_000},
    }  # fmt: skip
    done = subprocess.run(
        ["node", "--input-type=module", "-e", SCRIPT], input=json.dumps(config), text=True,
        capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    if done.returncode:
        return {"error": f"{PACKAGE}: failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}"}
    told = json.loads(done.stdout)
    return {"name": "inference-lab", **told, "per_second": told["requests"] / told["seconds"]}


def _lengths(told: dict[str, Any]) -> dict[str, Any]:
    return {"type": "lognormal", "mean": math.log(told["median"]), "std_dev": told["spread"]}
