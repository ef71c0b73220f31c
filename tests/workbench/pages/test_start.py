"""The start page's doors: what is said of what a person brings, and where they lead."""

import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest

from engine.cluster.parallelism import ParallelismConfig
from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.inference.serving_time.described import ServingRun
from workbench.catalogue import catalogue, study
from workbench.pages.doors.claim import claims_list
from workbench.pages.doors.cluster import plan_address, serving_address
from workbench.pages.doors.model import HERE, about_model, model_address, number
from workbench.pages.doors.trace import opened
from workbench.pages.frame.addresses import config_of
from workbench.pages.schedulers import SCHEDULERS, under
from workbench.pages.serve import start
from workbench.pages.shelf.shelf import TRACES, Shelf
from workbench.pages.sizing.plan import table
from workbench.pages.start import StartPage
from workbench.pages.thumbnails import thumbnail
from workbench.parallelism_split import knobs_of

NAMES = ["value", "value_input"]  # of a field
SMALL = {"devices": 16, "batch": 64, "model.layers": 8, "model.hidden": 1024, "model.heads": 16}


@pytest.mark.parametrize(
    ("name", "place"),
    [("stdlib-5m", HERE), ("llama-3.1-8b", "h100-sxm"), ("qwen3-0.6b", HERE)],
)
def test_a_model_leads_to_a_page_that_takes_its_knobs(name, place):
    address = urlsplit(model_address(name, place, dark=True))
    config = config_of(start(), dict(parse_qsl(address.query)))
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
    assert "“zero bubble” is called here" in listed
    assert "claim=" in listed and "Splitting the backward" in listed and "reproduced" in listed
    assert "No system" in claims_list("<img src=x>", dark=False)


def test_a_bad_model_name_closes_the_door_and_says_why():
    page = StartPage(Shelf())
    door = page.model
    door.model.value = "<b>nothing</b>"
    assert "href" not in door.onward.object and door.onward.object.count("aria-disabled") == 2
    assert "&lt;b&gt;nothing" in door.fits.object
    door.model.value = "stdlib-5m"
    assert door.onward.object.count("href") == 2 and "aria-disabled" not in door.onward.object


def test_a_cluster_leads_on_at_once_by_links_that_no_component_writes_back():
    door = StartPage(Shelf()).cluster
    door.count.value_input = "no"
    assert "href" not in door.onward.object and "How many" in door.said.object
    door.model.value, door.count.value_input = "Llama-3-8B", "8"
    assert door.model.value == door.model.value_input == "llama-3.1-8b"
    assert "devices=8&" in unescape(door.onward.object) and not door.said.object


def test_a_written_name_is_never_taken_back_between():
    door = StartPage(Shelf()).cluster
    heard, said = [], []
    door.model.param.watch(lambda *all: heard.extend(each.new for each in all), NAMES)
    door.said.param.watch(lambda event: said.append(event.new), "object")
    door.model.get_root()
    door.model._process_events({"value_input": "Llama-3-8B", "value": "Llama-3-8B"})
    assert heard and set(heard) == {"Llama-3-8B", "llama-3.1-8b"} and not any(said)


def test_an_unreadable_trace_is_named_in_one_line():
    page = StartPage(Shelf())
    door = page.trace
    door.file.filename = "broken.json"
    door.file.value = b"{"
    assert "broken.json" in door.read.object and "/" not in door.read.object.split("</p>")[0]
    assert not door.onward.object
    with pytest.raises(BadInput, match=r"^mine\.csv, line 2: "):
        opened(Shelf(), b"TIMESTAMP,ContextTokens,GeneratedTokens\nx,1,1\n", "mine.csv")


def test_requests_of_a_service_lead_to_two_schedulers_and_a_prediction():
    door = StartPage(Shelf()).trace
    door.file.filename = "../../mine.csv"
    lines = (f"2023-11-16 18:17:0{n // 4}.{250 * (n % 4):03d},{900 + n},{30 + n}" for n in range(9))
    door.file.value = "\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *lines]).encode()
    assert "9 requests in 2 s" in door.read.object and "Watch it" not in door.onward.object
    places = [unescape(each) for each in re.findall('href="([^"]*)"', door.onward.object)]
    compare, predict, design = (dict(parse_qsl(urlsplit(each).query)) for each in places)
    trace = compare["trace"]
    assert trace.endswith("mine.csv") and trace == predict["load.trace"]
    assert design["workload.file"] == trace
    first, second, *_ = SCHEDULERS
    runs = under(trace, "llama-3.1-8b", "h100-sxm", (first, second), "200", "1")
    assert [name for name, _ in runs] == [first, second]
    assert {run.config.batching.kind for _, run in runs} == {"decode_first", "prefill_first"}
    assert all(run.log.duration > 2 for _, run in runs)
    for wrong in ({"count": "x"}, {"schedulers": (first, first)}, {"model": "llama-3.1-405b"}):
        asked = {"trace": trace, "model": "llama-3.1-8b", "device": "h100-sxm", "speed": "1",
                 "schedulers": (first, second), "count": "9"}  # fmt: skip
        with pytest.raises(BadInput):
            under(**{**asked, **wrong})


def test_only_the_newest_files_of_requests_are_kept():
    shelf = Shelf()
    kept = [shelf.keep_trace(b"x", "a.csv") for _ in range(TRACES + 2)]
    assert [path.exists() for path in kept] == [False, False, *[True] * TRACES]


def test_a_cluster_leads_to_its_plan_and_its_serving():
    plan = dict(parse_qsl(urlsplit(plan_address("qwen3-8b", "h100-sxm", 24, False)).query))
    assert config_of(ParallelismConfig(), plan).architecture == "qwen3-8b"
    served = dict(parse_qsl(urlsplit(serving_address("qwen3-8b", "h100-sxm", 24, False)).query))
    split = config_of(ServingRun(), served).split
    assert (split.tensor, split.data) == (8, 3)


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


def test_what_can_be_tried_and_each_system_that_is_built_has_a_small_picture_of_a_run():
    shown = StartPage(Shelf()).tries.object
    assert all(thumbnail(slug, dark=False) in shown for slug in ("hogwild", "megatron", "batchllm"))
    built = [entry.slug for entry in catalogue() if entry.built]
    assert all(thumbnail(slug, dark=True) for slug in built)
    kept = sorted(dataset("thumbnails").glob("*.png"))
    assert sorted(built) == [path.stem for path in kept]
    assert sum(path.stat().st_size for path in kept) < 12_000 * len(kept)  # what a page may weigh
    assert thumbnail("no such picture", dark=False) == ""
