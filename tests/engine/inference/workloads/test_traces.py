"""Trace readers: the five layouts, their faults by file and line, and what is known of samples."""

import json
from fractions import Fraction

import pytest

from engine.core.errors import BadInput
from engine.core.limits import changed
from engine.inference.requests.request import Sampling
from engine.inference.workloads.trace import FromTrace
from engine.inference.workloads.traces.read import detect, load, reuse
from engine.inference.workloads.workload import Source

AZURE = """# a comment
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109

2023-11-16 18:15:51.2225670,879,55
"""
MOONCAKE = """{"timestamp": 0, "input_length": 700, "output_length": 5, "hash_ids": [0, 1]}
{"timestamp": 1500, "input_length": 1024, "output_length": 9, "hash_ids": [0, 2]}
"""
BURST = """Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log
5,,1.5,ChatGPT,472,18,490,Conversation log
45.5,7,2,GPT-4,1087,0,1087,API log
"""
VLLM = {"date": "20261128", "num_prompts": 2, "input_lens": [9, 30], "output_lens": [4, 7]}
SENT = {**VLLM, "start_times": [100.5, 100.25]}
TALK = [
    {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]},
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "Two."},
            {"role": "user", "content": "Three?"},
            {"role": "assistant", "content": "Four."},
            {"role": "user", "content": "never answered"},
        ]
    },
]


@pytest.fixture
def file(tmp_path):
    def write(text: str, name: str = "trace.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_an_azure_trace_reads_with_comments_and_seven_digit_seconds(file):
    trace = load(file(AZURE))
    assert trace.format == "azure"
    assert [(r.prompt, r.answer) for r in trace.requests] == [(374, 44), (396, 109), (879, 55)]
    assert [r.arrival for r in trace.requests] == pytest.approx([0, 4.314579, 4.541977], abs=1e-6)


@pytest.mark.parametrize("text", [AZURE, MOONCAKE, BURST, json.dumps(VLLM), json.dumps(TALK)])
@pytest.mark.parametrize("before", ["", "# a note\n"])
def test_a_mark_of_utf8_before_a_trace_changes_nothing(file, text, before):
    assert load(file(f"\ufeff{before}{text}")).requests == load(file(text)).requests


def test_azure_times_may_carry_a_zone_and_come_in_any_order(file):
    head = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    rows = "2024-05-12 02:00:01.5+02:00,7,1\n2024-05-12 00:00:00+00:00,8,2\n"
    trace = load(file(head + rows))
    assert [(r.arrival, r.prompt) for r in trace.requests] == [(0.0, 8), (1.5, 7)]


def test_a_burstgpt_trace_reads_by_its_columns_names(file):
    trace = load(file(BURST))
    assert trace.format == "burstgpt" and trace.timed
    assert [(r.arrival, r.prompt, r.answer) for r in trace.requests] == [
        (0.0, 472, 18),
        (40.5, 1087, 0),
    ]
    first = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n0,x,1,2,3,y\n"
    assert load(file(first)).requests[0].answer == 2


def test_a_result_of_vllms_benchmark_is_its_requests(file):
    sent = load(file(json.dumps(SENT)))
    assert sent.format == "vllm" and sent.timed
    assert [(r.arrival, r.prompt, r.answer) for r in sent.requests] == [(0, 30, 7), (0.25, 9, 4)]
    assert not load(file(json.dumps(VLLM))).timed
    twice = file(f"{json.dumps(SENT)}\n{json.dumps(SENT)}\n")
    with pytest.raises(BadInput, match="line 2: another run's result"):
        load(twice)


def test_a_workload_without_times_draws_them(file):
    source = Source(1000, 1 << 20, Sampling())
    path = str(file(json.dumps(VLLM)))
    told = FromTrace(file=path, rate=2.0).requests(source, 3)
    assert 0 < told[0].arrival < told[1].arrival
    assert [(len(r.prompt), r.sampling.max_tokens) for r in told] == [(9, 4), (30, 7)]
    again = FromTrace(file=path, rate=2.0).requests(source, 3)
    assert [r.arrival for r in told] == [r.arrival for r in again]


def test_a_mooncake_trace_reads_milliseconds_and_blocks(file):
    trace = load(file(MOONCAKE))
    assert trace.format == "mooncake"
    assert [(r.arrival, r.prompt, r.blocks) for r in trace.requests] == [
        (0.0, 700, (0, 1)),
        (1.5, 1024, (0, 2)),
    ]
    assert reuse(trace) == (1, 4)


@pytest.mark.parametrize("lines", [False, True])
def test_conversations_become_one_request_for_each_answer(file, lines):
    text = "\n".join(map(json.dumps, TALK)) if lines else json.dumps(TALK, indent=1)
    trace = load(file(text))
    assert trace.format == "sharegpt"
    assert [r.reply for r in trace.requests] == ["Hello", "Two.", "Four."]
    first, second, third = trace.requests
    assert third.text.startswith(second.text) and "Two." in third.text
    assert second.conversation == third.conversation != first.conversation


def test_a_slice_counts_from_its_own_first_request(file):
    trace = load(file(AZURE), first=1, count=1)
    assert [(r.arrival, r.prompt) for r in trace.requests] == [(0.0, 396)]
    with pytest.raises(BadInput, match="no requests from number 9 on"):
        load(file(AZURE), first=9)


GOOD = MOONCAKE.splitlines()[0]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (AZURE.replace("396", "x"), 4, "ContextTokens must be a whole number"),
        (AZURE.replace("396", "-3"), 4, "ContextTokens must be"),
        (AZURE.replace("396", "0"), 4, "ContextTokens must be"),
        (AZURE.replace("396", "99999999999"), 4, "ContextTokens must be"),
        (AZURE.replace(",109", ""), 4, "2 fields"),
        (AZURE.replace("2023-11-16 18:15:50.9951690", "noon"), 4, "TIMESTAMP 'noon'"),
        (AZURE.replace(",GeneratedTokens", ""), 2, "the header must be"),
        (BURST.replace("472", "x"), 2, "Request tokens must be a whole number"),
        (BURST.replace("45.5", "nan"), 3, "Timestamp must be seconds"),
        (BURST.replace("45.5", "noon"), 3, "Timestamp must be seconds"),
        (BURST.replace(",0,1087,API log", ""), 3, "5 fields where the header's have 6"),
        (json.dumps({**VLLM, "output_lens": [1]}), 1, "equally long lists"),
        (json.dumps({**VLLM, "output_lens": None}), 1, "save the result with --save-detailed"),
        (json.dumps({**VLLM, "input_lens": [9, 0]}), 1, "input_lens.1. must be"),
        (json.dumps({**SENT, "start_times": [1, True]}), 1, "start_times.1. must be seconds"),
        (GOOD + "\n{", 2, "not JSON"),
        (GOOD + "\n[]", 2, "not a JSON object"),
        (GOOD + "\n" + GOOD.replace("700", "7000"), 2, "2 hash_ids where 7000 tokens have 14"),
        (GOOD + "\n" + GOOD.replace("[0, 1]", "[0, -1]"), 2, "hash_ids must be"),
        (GOOD + "\n" + GOOD.replace("[0, 1]", "[0, true]"), 2, "hash_ids must be"),
        (GOOD + "\n" + GOOD.replace('": 0,', '": NaN,'), 2, "timestamp must be"),
        (GOOD + "\n" + GOOD.replace('": 5', '": 5.5'), 2, "output_length must be"),
        (json.dumps(TALK + [{"id": 1}]), 3, "conversations"),
        (json.dumps(TALK + [{"messages": ["x"]}]), 3, "a turn must be"),
        (json.dumps(TALK + [{"messages": [{"role": "user"}]}]), 3, "a turn needs the texts"),
    ],
)
def test_a_bad_line_gives_one_error_with_file_and_line_or_is_counted(file, text, line, message):
    path = file(text)
    with pytest.raises(BadInput, match=message) as fault:
        load(path)
    assert f"trace.txt, line {line}:" in str(fault.value) and "\n" not in str(fault.value)
    if "header must" not in message and len(text.splitlines()) > 1:
        assert load(path, lenient=True).skipped == 1


@pytest.mark.parametrize("talks", [1, 40])
def test_prompts_that_repeat_a_long_conversation_are_priced_before_they_are_made(file, talks):
    turns = [{"from": ("human", "gpt")[n % 2], "value": "so " * 20} for n in range(4000 // talks)]
    text = "\n".join([json.dumps({"conversations": turns})] * talks)
    refused = pytest.raises(BadInput, match=r"trace.txt.*unpacked_ratio=8")
    with changed(unpacked_free=1 << 20, unpacked_ratio=8), refused:
        load(file(text))


@pytest.mark.parametrize("text", ["", "# only\n", "hello\n", "<html>", "\x00\x01"])
def test_what_is_no_trace_is_refused(file, text):
    with pytest.raises(BadInput, match="not a known trace layout"):
        load(file(text))


def test_bytes_that_are_no_text_and_broken_lists_are_refused(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(b"TIMESTAMP,\xff\xfe\n")
    with pytest.raises(BadInput, match="not text in UTF-8"):
        load(path)
    path.write_text('[{"messages": [')
    with pytest.raises(BadInput, match="not JSON"):
        load(path)
    path.write_text("[" * 100_000)
    with pytest.raises(BadInput, match="not JSON"):
        load(path)
    with pytest.raises(BadInput, match="cannot read"):
        load(tmp_path / "none")
    path.write_text(MOONCAKE)
    with pytest.raises(BadInput, match="format 'csv': unknown"):
        load(path, "csv")


@pytest.fixture
def samples(root):
    folder = root.parent / "shared" / "truth" / "traces"
    if not folder.is_dir():
        pytest.skip(f"no public trace samples at {folder}")
    return folder


def test_an_endless_cache_finds_the_known_share_of_the_mooncake_samples_blocks(samples):
    trace = load(samples / "mooncake_conversation_first2000.jsonl")
    hits, blocks = reuse(trace)
    assert (blocks - hits, blocks) == (38_788, 54_559)
    assert round(float(Fraction(hits, blocks)), 6) == 0.289063


def test_the_azure_sample_reads_whole(samples):
    trace = load(samples / "azure_llm_2023_conv_first2000.csv")
    assert detect(trace.path) == "azure" and len(trace.requests) == 2000
    assert (trace.requests[0].prompt, trace.requests[0].answer) == (374, 44)
