"""Launch flags of a fleet design: its replicas and its router, as vLLM and SGLang are started.

Routers are vllm-router and sglang-router; hosts and ports are placeholders.
"""

from workbench.fleet_search.asked import FleetSearch
from workbench.fleet_search.designs import Design, described
from workbench.predictions.serving import SGLANG, VLLM, flags

POLICIES = {
    "power_of_choices": "power_of_two", "prefix_aware": "cache_aware", "round_robin": "round_robin",
}  # fmt: skip
BOOTSTRAP = 8998  # port at which a prefilling server of SGLang is found by those that decode
SENDS = """--kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'"""
SHOWN = 4  # addresses of a pool that are written out


def launches(asked: FleetSearch, design: Design) -> dict[str, list[str]]:
    """Command lines by engine: the servers', then the router's where there are several."""
    run, policy = described(asked, design), POLICIES[design.router]
    vllm = f"vllm serve {asked.model} {flags(run, VLLM)}"
    sglang = f"python -m sglang.launch_server --model-path {asked.model} {flags(run, SGLANG)}"
    decode = design.replicas - design.prefill
    if design.prefill:
        mode = "--disaggregation-mode"
        return {
            "vLLM": [
                f"{vllm} {SENDS}   # on each of {design.prefill} + {decode}",
                "vllm-router --vllm-pd-disaggregation"
                f"{_each('--prefill', 'prefill', design.prefill)}"
                f"{_each('--decode', 'decode', decode)} --policy {policy}",
            ],
            "SGLang": [
                f"{sglang} {mode} prefill --disaggregation-bootstrap-port {BOOTSTRAP}"
                f"   # on each of {design.prefill}",
                f"{sglang} {mode} decode   # on each of {decode}",
                "python -m sglang_router.launch_router --pd-disaggregation"
                f"{_each('--prefill', 'prefill', design.prefill, f' {BOOTSTRAP}')}"
                f"{_each('--decode', 'decode', decode)} --policy {policy}",
            ],
        }  # fmt: skip
    if design.replicas == 1:
        return {"vLLM": [vllm], "SGLang": [sglang]}
    workers = _addresses("replica", design.replicas)
    count = f"   # on each of {design.replicas}"
    return {
        "vLLM": [vllm + count, f"vllm-router --worker-urls {workers} --policy {policy}"],
        "SGLang": [
            sglang + count,
            f"python -m sglang_router.launch_router --worker-urls {workers} --policy {policy}",
        ],
    }


def _each(flag: str, role: str, count: int, after: str = "") -> str:
    """The flag once for each server of a pool, the first few written out."""
    told = "".join(f" {flag} http://{role}-{n}:8000{after}" for n in range(min(count, SHOWN)))
    return told + (f" … (to {role}-{count - 1})" if count > SHOWN else "")


def _addresses(role: str, count: int) -> str:
    told = " ".join(f"http://{role}-{n}:8000" for n in range(min(count, SHOWN)))
    return told + (f" … (to {role}-{count - 1})" if count > SHOWN else "")
