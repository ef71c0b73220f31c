"""The catalogue: complete, told in full, joined with the studies by file name."""

import json
import re

import pytest

from engine.core.errors import BadInput
from workbench.catalogue import catalogue, entry, families, search, study, study_files
from workbench.cli.main import main
from workbench.vocabulary import plain, vocabulary, words_of

SYSTEMS = 157


def test_every_system_has_a_row():
    rows = catalogue()
    assert len(rows) == SYSTEMS
    assert len({row.slug for row in rows}) == SYSTEMS
    assert len(families()) == 13


@pytest.mark.parametrize("row", catalogue(), ids=lambda row: row.slug)
def test_a_row_says_what_runs_and_what_must_hold(row):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", row.slug)
    assert row.title and row.paper
    assert row.about.endswith(".") and row.claim.endswith(".")
    assert not row.arxiv or re.fullmatch(r"\d{4}\.\d{5}", row.arxiv)


def test_studies_are_found_by_file_name(tmp_path):
    (tmp_path / "decoding").mkdir()
    (tmp_path / "decoding" / "two_words.py").write_text("")
    (tmp_path / "decoding" / "_shared.py").write_text("")
    assert study_files(tmp_path) == {"two-words": "workbench.studies.decoding.two_words"}


def test_every_study_file_is_a_row_of_the_catalogue():
    assert set(study_files()) <= {row.slug for row in catalogue()}


def test_search_puts_names_before_mentions():
    found = [row.slug for row in search("flover")]
    assert found[0] == "flover"
    named = search("attention")
    assert named.index(entry("flash-attention-2")) < named.index(entry("hogwild"))
    assert search("no such words anywhere") == []
    assert {row.family for row in search("", family="serving")} == {"serving"}


def test_a_wrong_slug_names_the_nearest():
    with pytest.raises(BadInput, match="did you mean batchllm"):
        study("batchlm")


def test_what_is_not_built_says_so():
    unbuilt = next(row for row in catalogue() if not row.built)
    with pytest.raises(BadInput, match="not built yet"):
        study(unbuilt.slug)


def test_the_command_line_lists_it_as_json(capsys):
    assert main(["catalogue", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == SYSTEMS
    assert {"slug", "title", "family", "built"} <= set(rows[0])
    assert all(isinstance(row["built"], bool) for row in rows)


def test_the_command_line_searches(capsys):
    assert main(["catalogue", "--search", "hogwild"]) == 0
    assert "hogwild" in capsys.readouterr().out
    assert main(["catalogue", "--search", "zzzz"]) == 0
    assert "nothing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        ("KV cache", "flover"),
        ("vLLM", "batchllm"),
        ("ttft", "flover"),
        ("FSDP", "megatron"),
        ("zero-bubble", "megatron"),
        ("ring attention", "tokenring"),
        ("kv-cache hogwild", "hogwild"),
        ("2405.10480", "lean-attention"),
        ("MoE", "exflow"),
    ],
)
def test_words_of_other_tools_are_understood(words, slug):
    assert slug in [row.slug for row in search(words)]


def test_a_word_within_another_is_not_said():
    assert not [w for _, w in words_of("https sleeping repository") if "ep" in w.said]
    assert [said for said, _ in words_of("zero bubble")] == ["zero bubble"]  # none of ZeRO
    assert [said for said, _ in words_of("ZeRO pipeline parallelism")] == [
        "pipeline parallelism",
        "zero",
    ]


def test_the_vocabulary_names_systems_there_are():
    for word in vocabulary():
        assert all(entry(slug) for slug in word.systems)
        assert all(said == plain(said) for said in word.said)
