"""The process in which vLLM runs for the benchmark; its arguments: a folder and a dtype.

Alone by intent: nothing of the workbench is imported here.
"""

import json
import sys
from time import perf_counter
from typing import Any

MARK = "workbench "  # before each line of ours, among the engine's own
CONTEXT = 512  # positions of each sequence; the benchmark's longest is 384


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(f"{MARK}{json.dumps(message)}\n")
    sys.stdout.flush()


def serve(checkpoint: str, dtype: str) -> None:
    """Open the engine, then answer line by line until there are no more."""
    import vllm
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        raise SystemExit("this vllm is not the build for processors")
    model = vllm.LLM(
        model=checkpoint,
        dtype=dtype,
        max_model_len=CONTEXT,
        max_num_seqs=64,
        max_num_batched_tokens=CONTEXT,
        enable_prefix_caching=False,
        seed=0,
    )
    say({})
    for number, line in enumerate(sys.stdin):
        say(answer(vllm, model.llm_engine, json.loads(line), number))


def answer(vllm: Any, engine: Any, wanted: list[Any], number: int) -> dict[str, Any]:
    """Tokens of each (prompt, count), all asked for at once, and the seconds they took."""
    tokens: list[list[int]] = [[] for _ in wanted]
    first = 0.0
    start = perf_counter()
    for row, (prompt, count) in enumerate(wanted):
        wish = vllm.SamplingParams(
            temperature=0.0, max_tokens=count, ignore_eos=True, detokenize=False
        )
        engine.add_request(f"{number}.{row}", {"prompt_token_ids": prompt}, wish)
    while engine.has_unfinished_requests():
        for output in engine.step():
            row = int(output.request_id.split(".")[1].split("-")[0])
            tokens[row] = list(output.outputs[0].token_ids)
        if not first and tokens[0]:
            first = perf_counter()
    stop = perf_counter()
    return {"tokens": tokens, "seconds": stop - start, "decode_seconds": stop - first}


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
