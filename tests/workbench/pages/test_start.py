"""The start page's doors: what is said of what a person brings, and where they lead."""

from urllib.parse import parse_qsl, urlsplit

import pytest

from engine.cluster.parallelism import ParallelismConfig
from engine.core.config import update
from engine.core.errors import BadInput
from workbench.catalogue import study
from workbench.pages.addresses import config_of
from workbench.pages.plan import table
from workbench.pages.shelf import Shelf
from workbench.pages.start import (
    HERE,
    StartPage,
    about_model,
    claims_list,
    model_address,
    number,
)
from workbench.parallelism_split import knobs_of

SMALL = {"devices": 16, "batch": 64, "model.layers": 8, "model.hidden": 1024, "model.heads": 16}


@pytest.mark.parametrize(
    ("name", "place"),
    [("stdlib-5m", HERE), ("llama-3.1-8b", "h100-sxm"), ("qwen3-0.6b", HERE)],
)
def test_a_model_leads_to_a_study_that_takes_its_knobs(name, place):
    address = urlsplit(model_address(name, place, dark=True))
    query = dict(parse_qsl(address.query))
    config = config_of(study(query["slug"]).config, query)
    assert config.model == name
    assert config.executor.real == (place == HERE)
    assert "KV cache a token" in about_model(name, place)


def test_a_model_larger_than_its_device_is_refused_with_both_sizes():
    with pytest.raises(BadInput, match=r"70\.6 B parameters: 131 GiB.*H100 SXM has 74\.5 GiB"):
        about_model("llama-3.1-70b", "h100-sxm")
    with pytest.raises(BadInput, match="did you mean llama"):
        about_model("lama-3.1-70b", HERE)


def test_parameters_are_counted_as_people_say_them():
    assert number(70.56e9) == "70.6 B"
    assert number(5.48e6) == "5.48 M"


def test_a_claim_is_found_by_words_of_other_tools():
    listed = claims_list("zero bubble", dark=False)
    assert "slug=megatron" in listed
    assert "is called here" in listed
    assert "No paper" in claims_list("<img src=x>", dark=False)


def test_a_bad_model_name_closes_the_door_and_says_why():
    page = StartPage(Shelf())
    page.model.value = "<b>nothing</b>"
    assert page.run.disabled
    assert "&lt;b&gt;nothing" in page.fits.object
    page.model.value = "stdlib-5m"
    assert not page.run.disabled


def test_an_unreadable_trace_is_named_in_one_line():
    page = StartPage(Shelf())
    page.file.filename = "broken.json"
    page.file.value = b"{"
    assert "broken.json" in page.read.object and "/" not in page.read.object.split("</p>")[0]
    assert not page.watch.visible


def test_splits_are_told_with_the_way_to_their_schedule(small_search):
    config, found = small_search
    told = table(config, found, dark=False)
    assert f"{found.counted:,} splits" in told
    assert told.count("watch its schedule") == min(10, sum(s.clocked for s in found.splits))
    played = config_of(
        study("megatron").config, {k: str(v) for k, v in knobs_of(found.splits[0]).items()}
    )
    assert played.ranks == found.splits[0].pipeline


@pytest.fixture(scope="module")
def small_search():
    from engine.cluster.parallelism import search

    config = update(ParallelismConfig(clocked=4), SMALL)
    return config, search(config)
