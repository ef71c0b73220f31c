"""Regime maps on disk, and what a drawing does with them."""

from dataclasses import replace

import pytest

from engine.core.config import update
from engine.core.errors import BadInput
from tests.workbench.test_regime import CLAIM, OVER
from tests.workbench.toy import TOY
from workbench import kept_maps
from workbench.drawing import drawings
from workbench.regime import draw

STUDY = replace(TOY, claims=(CLAIM,), regimes=(OVER,))


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def made(fast=True):
    return draw(OVER, CLAIM, TOY.config, TOY.run_config(), "here", fast)


def test_a_kept_map_answers_the_same_question_and_no_other(tmp_path):
    kept_maps.keep(made(), "flover", TOY.config, 0, tmp_path)
    asked = ("flover", OVER.name, TOY.config, 0, True, tmp_path)
    assert kept_maps.known(*asked) == made()
    other = update(TOY.config, {"order": "down"})
    assert kept_maps.known("flover", OVER.name, other, 0, True, tmp_path) is None
    assert kept_maps.known("flover", OVER.name, TOY.config, 1, True, tmp_path) is None
    assert kept_maps.known("flover", OVER.name, TOY.config, 0, False, tmp_path) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 3, "points": [{}]}'])
def test_a_damaged_file_is_no_map(tmp_path, text):
    kept_maps.keep(made(), "flover", TOY.config, 0, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(text)
    assert kept_maps.known("flover", OVER.name, TOY.config, 0, True, tmp_path) is None


def test_saved_maps_of_other_names_stay(tmp_path):
    kept_maps.save(tmp_path, "flover", [made()])
    path = kept_maps.save(tmp_path, "flover", [replace(made(), name="another")])
    assert path.read_text().count('"name"') == 2
    with pytest.raises(BadInput, match="no such folder"):
        kept_maps.save(tmp_path / "none", "flover", [made()])


@pytest.mark.parametrize("text", ["", "[1]", "{}x", '[{"name": 3, "points": [{}]}]'])
def test_maps_are_not_saved_over_a_damaged_file(tmp_path, text):
    path = tmp_path / "flover.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"flover\.json: holds no maps"):
        kept_maps.save(tmp_path, "flover", [made()])
    assert path.read_text() == text and list(tmp_path.iterdir()) == [path]


def test_a_drawing_runs_once_and_is_known_then(home):
    (first,) = drawings(STUDY)
    assert first.empty
    with pytest.raises(BadInput, match="not drawn yet"):
        first.figure()
    first.ask(STUDY.config).wait(300)
    assert [point.value for point in first.map.points] == [1, 5, 9]
    (again,) = drawings(STUDY)
    assert again.ask(STUDY.config) is None
    assert again.map == first.map
    assert again.ask(STUDY.config, fresh=True) is not None
    again.run.wait(300)


def test_its_figure_is_shaded_where_the_claim_holds(home):
    (drawing,) = drawings(STUDY)
    drawing.ask(STUDY.config, fast=False).wait(300)
    shown = drawing.figure()
    told = "Holds up to 5, reaches the paper's figure up to 3; the paper has 4"
    assert shown.title.text.split() == told.split()
    assert max(map(len, shown.title.text.splitlines())) * 8 < shown.width - 60  # none is cut off
    (shade,) = [each for each in shown.center if type(each).__name__ == "BoxAnnotation"]
    assert shade.right == 6
    assert not isinstance(shade.left, float)  # from the edge of the frame
    upright = [each for each in shown.center if getattr(each, "dimension", "") == "height"]
    assert sorted(each.location for each in upright) == [4, 5]  # the paper, the default
