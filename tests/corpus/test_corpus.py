"""Runs and addresses of before open as before: one saved run of each of 27 studies.

`runs/*.run` were saved by commit 7d50c94, each study as it stood. `then.json` holds what was
printed of them then (`workbench run --json`) and the addresses that its presets and tries had.
"""

import inspect
import json
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from engine.core.config import from_dict, update
from engine.core.file import load, save
from engine.core.log import Log
from widgets.view import views
from workbench.catalogue import study
from workbench.pages.frame.addresses import config_of, query_of
from workbench.pages.suggested_views import suggested_views
from workbench.study import Study
from workbench.summary import summary

HERE = Path(__file__).parent
THEN = json.loads((HERE / "then.json").read_text())
# Knobs whose defaults have changed since, by study, and why; a run of before keeps its own values.
CHANGED = {"noloco": {"method.momentum": "it stands at its authors' 0.5, where 0.3 was ours"}}
# Knobs that mean nothing now: an address with nothing else opens the study as it stands.
GONE = {"sweep": "curves over a knob are `sweeps` of the study, drawn when asked for"}


@pytest.fixture(scope="module", params=sorted(THEN))
def slug(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def chosen(slug) -> Study:
    return study(slug)


@pytest.fixture(scope="module")
def log(slug) -> Log:
    return load(HERE / "runs" / f"{slug}.run")


def test_there_is_a_run_of_each(slug):
    assert {path.stem for path in (HERE / "runs").iterdir()} == set(THEN)


def test_its_config_reads_back_and_is_how_the_study_stands(slug, chosen, log):
    """An address says what differs from how the study stands, so that must not move."""
    config = from_dict(type(chosen.config), log.opened.config)
    assert log.opened.study == slug
    assert set(query_of(config, chosen.config)) <= set(CHANGED.get(slug, {}))


def test_its_figures_are_those_of_then(slug, log):
    now = summary(log)
    for name, figures in THEN[slug]["summary"].items():
        assert json.dumps(now[name]) == json.dumps(figures)


def test_every_view_of_it_folds_to_its_end(chosen, log):
    for name in {*chosen.views, *suggested_views(log)}:
        view = views()[name]
        state = view.fold(log.blobs) if inspect.signature(view.fold).parameters else view.fold()
        for event in log:
            state.add(event)
        assert state.frame()


def test_saved_again_it_is_the_same_run(log, tmp_path):
    again = load(save(log, tmp_path / "again.run"))
    assert list(again) == list(log)
    assert again.blobs.keys() == log.blobs.keys()


def test_its_addresses_open_as_before(slug, chosen):
    for address in THEN[slug]["addresses"]:
        query = dict(parse_qsl(address, keep_blank_values=True))
        opened = config_of(chosen.config, query)
        assert opened != chosen.config or query.keys() <= GONE.keys()
        for path, value in query.items():
            assert update(opened, {path: value}) == opened, f"{slug}?{address}: {path}"
        assert config_of(chosen.config, query_of(chosen.config, opened)) == opened
