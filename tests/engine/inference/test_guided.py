"""Answers held to a grammar: whole JSON of the schema, in forks and after preemption too."""

import json

import jsonschema
import numpy as np
import pytest

from engine.core.clock import VirtualClock
from engine.core.errors import BadInput
from engine.core.limits import changed
from engine.core.paths import dataset
from engine.inference.engine import Engine
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.requests.request import Request, sampling
from engine.models.families import parse
from engine.models.loading.load import random_model
from engine.models.text.grammar import Grammars
from engine.models.text.schema_numbers import check_numbers
from engine.models.text.tokenizer import Tokenizer
from tests.engine.inference.small import TINY, config

SCHEMA = {
    "type": "object",
    "properties": {
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "kind": {"enum": ["cat", "dog"]},
    },
    "required": ["age", "kind"],
    "additionalProperties": False,
}
FOLDER = dataset("models/stdlib-5m")
EOS = 1


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(FOLDER)


@pytest.fixture(scope="module")
def grammars(tokenizer):
    made = Grammars(tokenizer.rules.to_str(), tokenizer.vocab, [EOS])
    yield made
    made.close()


@pytest.fixture(scope="module")
def model(tokenizer):
    """Untrained: left to itself it writes noise."""
    return random_model(parse(TINY | {"vocab_size": tokenizer.vocab, "eos_token_id": EOS}), seed=3)


def answers(model, tokenizer, requests, states=("finished",), **fields):
    chosen = config(**{"pages": 400} | fields)
    held = Engine(
        chosen, executor_for(chosen, model, "t", (EOS,)), VirtualClock(), lambda e: None, tokenizer
    )
    for one in requests:
        held.add(one)
    every = {one.id: one for one in requests}
    while held.step():
        every |= held.requests
    assert all(one.state in states for one in every.values())
    return {name: (tokenizer.decode(one.generated.tolist()), one) for name, one in every.items()}


def ask(tokenizer, guide, seed=0, **wish):
    prompt = tokenizer.encode("import json\n")
    made = Request(prompt, sampling(**{"max_tokens": 200, "temperature": 1.5, "seed": seed} | wish))
    made.guide = guide
    return made


@pytest.mark.parametrize(
    "fields", [{}, {"pages": 60, "host_pages": 64, "preemption": "swap"}], ids=str
)
def test_every_answer_is_json_of_the_schema(model, tokenizer, grammars, fields):
    requests = [ask(tokenizer, grammars.schema(SCHEMA), seed, n=1 + seed % 2) for seed in range(6)]
    plain = ask(tokenizer, None, 7, max_tokens=40)
    found = answers(model, tokenizer, [*requests, plain], **fields)
    texts = set()
    for name, (text, one) in found.items():
        if name == plain.id:
            with pytest.raises(ValueError):
                json.loads(text)
            continue
        assert one.reason in ("stop", "length")
        if one.reason == "stop":
            jsonschema.validate(json.loads(text), SCHEMA)
            texts.add("".join(text.split()))
    assert len(texts) > 3, "samples differ"


def test_text_is_free_until_a_call_begins(tokenizer, grammars):
    schema = {"type": "object", "properties": {"name": {"const": "f"}}, "required": ["name"]}
    guide = grammars.calls([schema])
    text = 'well <tool_call>\n{"name": "f"}\n</tool_call>'
    free = []
    for token in tokenizer.encode(text, special=False):
        scores = np.zeros(tokenizer.vocab, np.float32)
        guide.forbid(scores)
        assert scores[token] == 0
        free.append(int((scores == 0).sum()))
        guide.take(token)
    assert free[0] > 1000 and 1 in free


@pytest.mark.parametrize("schema", [{"type": "bogus"}, {"not": {}}, {"enum": ["a" * 70_000]}])
def test_what_is_no_schema_is_one_line(grammars, schema):
    with pytest.raises(BadInput, match="schema") as caught:
        grammars.schema(schema)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "multipleOf": 9_999_991, "maximum": 9 * 10**15},
        {"type": "string", "allOf": [{"pattern": f".*{letter}.*"} for letter in "abcdefghijklmno"]},
    ],
)
def test_a_schema_that_costs_hours_is_stopped_by_name_and_the_next_is_taken(grammars, schema):
    with changed(schema_seconds=0.05), pytest.raises(BadInput, match="schema_seconds"):
        grammars.schema(schema)
    grammars.schema(SCHEMA)


def test_a_grammar_that_cannot_be_walked_on_ends_its_answer_as_none(model, tokenizer, grammars):
    wide = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(800)}}
    request = ask(tokenizer, grammars.schema(wide))
    found = answers(model, tokenizer, [request], states=("aborted",))
    assert found[request.id][1].guide.broken


def test_a_schema_that_refers_to_itself_alone_is_refused_in_plain_words(grammars):
    with pytest.raises(BadInput) as caught:
        grammars.schema({"$ref": "#"})
    assert str(caught.value) == "schema: no answer can begin; does it refer to itself alone?"


def test_a_model_without_an_end_cannot_be_held(tokenizer):
    with pytest.raises(BadInput, match="end token"):
        Grammars(tokenizer.rules.to_str(), tokenizer.vocab, [])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": (1 << 53) + 1},
        {"type": "integer", "minimum": 10**30, "maximum": 10**30 + 5},
        {"const": (1 << 63) + 1},
        {"type": "object", "properties": {"enum": {"enum": [{"a": [1 << 63]}]}}},
    ],
)
def test_numbers_that_would_be_rounded_are_refused(schema):
    with pytest.raises(BadInput, match="exactly"):
        check_numbers(schema)


def test_bounds_past_every_number_that_is_written_and_round_values_are_taken():
    check_numbers({"type": "integer", "minimum": -(1 << 63), "maximum": (1 << 63) - 1})
    check_numbers({"enum": [10**30, -7, 0.1], "default": (1 << 60) + 1})
