"""Request bodies: what the engine takes comes out, anything else is one line."""

from unittest.mock import MagicMock

import pytest

from engine.core.errors import BadInput
from workbench.api.handlers import Generation
from workbench.api.requests import chat, completion

TEXT = {"model": "m", "prompt": "def f("}
TALK = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def test_a_client_may_leave_while_its_body_comes():
    handler = Generation.__new__(Generation)  # as tornado holds it before `prepare`
    handler.request = MagicMock()
    handler.on_connection_close()
    assert handler.gone and not handler.tickets


def test_a_completion_has_the_interface_s_defaults():
    asked = completion(TEXT)
    assert asked.prompts == ("def f(",)
    assert asked.sampling.temperature == 1.0
    assert asked.sampling.max_tokens == 16
    assert not asked.stream


def test_all_kinds_of_prompt_are_read():
    assert completion({**TEXT, "prompt": [1, 2]}).prompts == ((1, 2),)
    assert completion({**TEXT, "prompt": ["a", "b"]}).prompts == ("a", "b")
    assert completion({**TEXT, "prompt": [[1], [2, 3]]}).prompts == ((1,), (2, 3))


def test_sampling_goes_through():
    fields = {"temperature": 0, "stop": "\n", "logit_bias": {"5": -100}, "seed": 7, "top_k": 3}
    made = completion({**TEXT, **fields, "logprobs": 2}).sampling
    assert made.temperature == 0.0
    assert made.stop == ("\n",)
    assert made.logit_bias == ((5, -100.0),)
    assert (made.seed, made.top_k, made.logprobs) == (7, 3, 2)


def test_chat_reads_text_parts_and_streams():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    asked = chat({**TALK, "messages": [{"role": "user", "content": parts}], "stream": True})
    assert asked.messages == ({"role": "user", "content": "ab"},)
    assert asked.stream


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"prompt": ""}, "empty"),
        ({"guidance_scale": 2.0}, "called guidance here"),
        ({"guidance": 2.0}, "guidance 2 needs a negative_prompt, .* give one"),
        ({"prompt": None}, "prompt"),
        ({"prompt": [True]}, "prompt"),
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": ["a"] * 65}, "at most 64"),
        ({"prompt": "x" * (1 << 20) + "y"}, "characters"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"n": True}, "n: give a number"),
        ({"seed": False}, "seed"),
        ({"temperature": True}, "temperature"),
        ({"logprobs": True}, "logprobs"),
        ({"ignore_eos": "perhaps"}, "ignore_eos"),
        ({"logit_bias": {"5": True}}, "logit_bias"),
        ({"logit_bias": {"\u00b2": 1}}, "logit_bias"),
        ({"logit_bias": {"9" * 5000: 1}}, "logit_bias"),
        ({"n": 5000}, "'n'"),
        ({"logit_bias": {"a": 1}}, "logit_bias"),
        ({"stop": [""]}, "stop"),
        ({"stop": [3]}, "stop"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": []}, "stream_options"),
        ({"stream_options": {"include_usage": "no"}}, "include_usage"),
        ({"min_tokens": 17}, "min_tokens: 17, of max_tokens 16 at most"),
        ({"echo": 1}, "echo"),
        ({"best_of": 65}, "best_of"),
        ({"suffix": 3}, "suffix"),
        ({"suffix": "x", "echo": True}, "echo"),
        ({"response_format": "json"}, "response_format"),
        ({"tools": []}, "tools"),
        ({"model": 3}, "model"),
    ],
)
def test_a_wrong_completion_names_its_field(change, says):
    with pytest.raises(BadInput, match=says):
        completion({**TEXT, **change})


@pytest.mark.parametrize(
    "messages",
    [
        None,
        [],
        "hi",
        [{"role": "user"}],
        [{"role": "wizard", "content": "x"}],
        [{"role": "user", "content": [{"type": "image_url"}]}],
        ["hi"],
        [{"role": "user", "content": "x"}] * 1025,
    ],
)
def test_wrong_messages_are_refused(messages):
    with pytest.raises(BadInput, match="messages"):
        chat({**TALK, "messages": messages})


@pytest.mark.parametrize(
    "change",
    [
        {"max_tokens": True},
        {"max_completion_tokens": True},
        {"logprobs": True, "top_logprobs": "many"},
        {"logprobs": True, "top_logprobs": True},
        {"logprobs": 1},
        {"top_logprobs": 2},
    ],
)
def test_a_wrong_number_in_a_chat_is_refused(change):
    with pytest.raises(BadInput, match=r"give a number|logprobs"):
        chat({**TALK, **change})
