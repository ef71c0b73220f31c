"""The official `openai` client over every route and field, against one server of a real model."""

import importlib
import json
import math

import jsonschema
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.inference.config import InferenceConfig
from tests.workbench.api.asking import ask, served
from workbench.live.live import LiveEngine

MODEL = "stdlib-5m"
PROMPT = "import json\n\ndef load(path):\n"
CAT = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
BY_NAME = {"$defs": {"Cat": CAT}, "$ref": "#/$defs/Cat"}  # as pydantic writes it
TOOL = {"type": "function", "function": {"name": "feed", "parameters": BY_NAME}}
TALK = [{"role": "user", "content": "import"}]
PLAIN = {"model": MODEL, "prompt": PROMPT, "temperature": 0, "max_tokens": 6}


@pytest.fixture(scope="module")
def port():
    live = LiveEngine(InferenceConfig(model=MODEL)).start()
    live.wait()
    with served(live) as found:
        yield found


@pytest.fixture(scope="module")
def openai():
    """Takes most of a second to import: of the worker that asks."""
    return importlib.import_module("openai")


@pytest.fixture(scope="module")
def client(port, openai):
    with openai.OpenAI(
        base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0
    ) as found:
        yield found


def test_models(client, openai):
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).owned_by == "workbench"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("another")


def test_a_completion_and_its_stream_say_the_same(client):
    whole = client.completions.create(**PLAIN)
    pieces = list(
        client.completions.create(**PLAIN, stream=True, stream_options={"include_usage": True})
    )
    assert "".join(p.choices[0].text for p in pieces[:-1]) == whole.choices[0].text
    assert pieces[-1].usage.completion_tokens == whole.usage.completion_tokens == 6
    assert whole.usage.prompt_tokens_details.cached_tokens >= 0


def test_a_prompt_is_said_again_with_its_log_probabilities(client, port):
    made = client.completions.create(**PLAIN, echo=True, logprobs=2)
    (choice,) = made.choices
    told = choice.logprobs
    assert choice.text.startswith(PROMPT)
    assert len(told.tokens) == made.usage.total_tokens == len(told.token_logprobs)
    assert told.token_logprobs[0] is None and told.top_logprobs[0] is None
    assert all(value < 0 for value in told.token_logprobs[1:])
    assert told.text_offset[0] == 0 and told.text_offset[-1] < len(choice.text)
    for value, tops in zip(told.token_logprobs[1:], told.top_logprobs[1:], strict=True):
        assert max(tops.values()) >= value - 1e-6
    # The answer's own tokens score the same once they are a prompt.
    asked = {**PLAIN, "prompt": choice.text, "max_tokens": 0, "echo": True, "logprobs": 1}
    again = client.completions.create(**asked).choices[0]
    assert again.text == choice.text
    np.testing.assert_allclose(
        again.logprobs.token_logprobs[1:], told.token_logprobs[1:], atol=1e-4
    )
    streamed = list(client.completions.create(**PLAIN, echo=True, logprobs=2, stream=True))
    assert "".join(p.choices[0].text for p in streamed) == choice.text
    lengths = [len(p.choices[0].logprobs.tokens) for p in streamed if p.choices[0].logprobs]
    assert sum(lengths) == len(told.tokens)


def test_prompt_logprobs_are_vllm_s(client):
    body = {"prompt_logprobs": 1}
    made = client.completions.create(**PLAIN, extra_body=body)
    first, *rest = made.choices[0].prompt_logprobs
    assert first is None and len(rest) == made.usage.prompt_tokens - 1
    for row in rest:
        entries = list(row.values())
        assert len(entries) in (1, 2) and entries[0]["rank"] == 1
        assert all({"logprob", "rank", "decoded_token"} == set(entry) for entry in entries)
    talk = client.chat.completions.create(model=MODEL, messages=TALK, max_tokens=2, extra_body=body)
    assert len(talk.choices[0].prompt_logprobs) == talk.usage.prompt_tokens


def test_the_best_of_several_is_kept(client, openai):
    wish = {**PLAIN, "temperature": 1.0, "seed": 3, "logprobs": 1}
    every = client.completions.create(**wish, n=4)
    best = client.completions.create(**wish, n=2, best_of=4)
    mean = [np.mean(choice.logprobs.token_logprobs) for choice in every.choices]
    right = [every.choices[place].text for place in np.argsort(mean)[::-1][:2]]
    assert [choice.text for choice in best.choices] == right
    assert best.usage.completion_tokens == every.usage.completion_tokens
    with pytest.raises(openai.BadRequestError, match="best_of"):
        client.completions.create(**wish, best_of=4, stream=True)


def test_a_chat_and_its_stream(client):
    wish = {"model": MODEL, "messages": TALK, "temperature": 0, "max_completion_tokens": 5}
    whole = client.chat.completions.create(**wish, logprobs=True, top_logprobs=3)
    assert whole.choices[0].finish_reason == "length"
    assert len(whole.choices[0].logprobs.content) == 5
    assert len(whole.choices[0].logprobs.content[0].top_logprobs) == 3
    pieces = list(client.chat.completions.create(**wish, stream=True))
    text = "".join(piece.choices[0].delta.content or "" for piece in pieces)
    assert text == whole.choices[0].message.content


def test_an_answer_is_json_of_its_schema(client, openai):
    wish = {"model": MODEL, "messages": TALK, "max_tokens": 120, "seed": 5}
    form = {"type": "json_schema", "json_schema": {"name": "cat", "schema": CAT, "strict": True}}
    made = client.chat.completions.create(**wish, response_format=form)
    assert made.choices[0].finish_reason == "stop"
    jsonschema.validate(json.loads(made.choices[0].message.content), CAT)
    wild = client.chat.completions.create(**wish, response_format={"type": "json_object"})
    if wild.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(wild.choices[0].message.content), dict)
    text = client.completions.create(
        **{**PLAIN, "max_tokens": 120}, extra_body={"response_format": form}
    )
    jsonschema.validate(json.loads(text.choices[0].text), CAT)
    wrong = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "bogus"}}}
    with pytest.raises(openai.BadRequestError, match="bogus"):
        client.chat.completions.create(**wish, response_format=wrong)


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "feed"}}], ids=str
)
def test_a_tool_is_called(client, choice):
    wish = {"model": MODEL, "messages": TALK, "max_tokens": 120, "tools": [TOOL]}
    wish |= {"tool_choice": choice, "seed": 5}
    made = client.chat.completions.create(**wish).choices[0]
    (call,) = made.message.tool_calls
    assert made.finish_reason == "tool_calls" and call.function.name == "feed"
    jsonschema.validate(json.loads(call.function.arguments), CAT)
    pieces = list(client.chat.completions.create(**wish, stream=True))
    calls = [c for piece in pieces for c in piece.choices[0].delta.tool_calls or []]
    assert calls[0].function.arguments == call.function.arguments
    assert pieces[-1].choices[0].finish_reason == "tool_calls"
    said = {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]}
    heard = {"role": "tool", "tool_call_id": call.id, "content": "fed"}
    more = client.chat.completions.create(
        model=MODEL, messages=[*TALK, said, heard], max_tokens=2, tools=[TOOL]
    )
    assert more.choices[0].finish_reason == "length", "with tools and none called it is text"


def test_a_response_and_its_events(client, openai):
    wish = {"model": MODEL, "input": "import", "temperature": 0, "max_output_tokens": 5}
    whole = client.responses.create(**wish, instructions="def")
    assert whole.status == "incomplete" and whole.usage.output_tokens == 5
    assert whole.incomplete_details.reason == "max_output_tokens"
    events = list(client.responses.create(**wish, instructions="def", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created" and events[-1].type == "response.incomplete"
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text == events[-1].response.output_text
    form = {"format": {"type": "json_schema", "name": "cat", "schema": CAT}}
    made = client.responses.create(model=MODEL, input=TALK, max_output_tokens=120, text=form)
    jsonschema.validate(json.loads(made.output_text), CAT)
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        client.responses.create(**wish, previous_response_id="resp_1")


def test_embeddings_are_the_same_packed_and_written_out(client, openai):
    texts = [PROMPT, "import json\n", PROMPT]
    packed = client.embeddings.create(model=MODEL, input=texts)
    plain = client.embeddings.create(model=MODEL, input=texts, encoding_format="float")
    vectors = np.array([row.embedding for row in packed.data])
    np.testing.assert_allclose(vectors, [row.embedding for row in plain.data], atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors.shape == (3, 256) and np.array_equal(vectors[0], vectors[2])
    assert vectors[0] @ vectors[1] < 0.999
    assert packed.usage.prompt_tokens == packed.usage.total_tokens > 0
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        client.embeddings.create(model=MODEL, input="a", dimensions=7)


def test_tokens_and_back(port):
    told = json.loads(ask(port, "/tokenize", {"prompt": PROMPT, "return_token_strs": True})[1])
    assert told["count"] == len(told["tokens"]) == len(told["token_strs"])
    assert told["max_model_len"] == 512 and "".join(told["token_strs"]).endswith(PROMPT)
    back = json.loads(ask(port, "/detokenize", {"tokens": told["tokens"]})[1])
    assert back["prompt"].endswith(PROMPT)
    assert json.loads(ask(port, "/tokenize", {"messages": TALK})[1])["count"] > 0
    assert ask(port, "/detokenize", {"tokens": [99999]})[0] == 400
    assert ask(port, "/tokenize", {"prompt": "a", "bogus": 1})[0] == 400


def test_health_and_counts(client, port):
    assert ask(port, "/health")[0] == 200
    before = counted(port)
    client.completions.create(**PLAIN, n=2)
    after = counted(port)
    grew = {name: after[name] - before.get(name, 0) for name in after}
    assert grew["vllm:generation_tokens_total"] == 12
    assert grew["vllm:request_success_total"] == 2
    assert grew["vllm:prompt_tokens_total"] == grew["vllm:prefix_cache_queries_total"] > 0
    assert grew["vllm:time_to_first_token_seconds_count"] == 1
    assert grew["vllm:inter_token_latency_seconds_count"] == 10
    assert grew["vllm:e2e_request_latency_seconds_count"] == 2
    assert after["vllm:num_requests_running"] == 0
    assert 0 <= after["vllm:kv_cache_usage_perc"] <= 1


def counted(port):
    """Every sample but buckets, summed over its labels."""
    found = {}
    for family in text_string_to_metric_families(ask(port, "/metrics")[1]):
        for sample in family.samples:
            assert sample.labels.get("model_name", MODEL) == MODEL
            if not sample.name.endswith("_bucket"):
                found[sample.name] = found.get(sample.name, 0) + sample.value
    assert all(math.isfinite(value) for value in found.values())
    return found


def test_more_log_probabilities_than_anybody_can_read_are_refused_by_their_limit(port):
    prompts = [[5 + place] * 100 for place in range(64)]
    asked = {"model": MODEL, "prompt": prompts, "max_tokens": 1, "prompt_logprobs": 64}
    status, text = ask(port, "/v1/completions", asked)
    line = json.loads(text)["error"]["message"]
    assert status == 400 and "416,000 log-probabilities" in line and "answer_numbers" in line
    asked = {**PLAIN, "n": 64, "max_tokens": 500, "logprobs": 20}
    assert ask(port, "/v1/completions", asked)[0] == 400


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("suffix", "x"), ("best_of", 0), ("echo", 1), ("prompt_logprobs", 65),
        ("response_format", {"type": "xml"}), ("response_format", []),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(port, field, value):
    status, text = ask(port, "/v1/completions", {**PLAIN, field: value})
    assert status == 400 and field in json.loads(text)["error"]["message"]
