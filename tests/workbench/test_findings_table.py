"""The record of findings and its table."""

import json
from pathlib import Path

import pytest

from engine.core.errors import BadInput
from workbench.catalogue import catalogue
from workbench.finding import Figure, Reported, finding
from workbench.findings_table import (
    ALONE,
    BEGIN,
    END,
    HEAD,
    by_family,
    findings_of,
    kind,
    markdown,
    on_others,
    put,
    record,
    recorded,
    told_by_machine,
)
from workbench.trainings.record import headlines, notes

README = Path(__file__).parents[2] / "README.md"
ROW = {
    "slug": "flover", "claim": "a", "grade": "exact", "timed": False, "figure": None,
    "needed": None, "reported": None, "holds": True, "finding": "reproduced", "machine": "here",
    "fast": True, "sentence": "not kept",
}  # fmt: skip
ROWS = [ROW, {**ROW, "claim": "b", "finding": "contrary"}, {**ROW, "slug": "megatron"}]


def test_findings_are_counted_by_family_and_in_all():
    counts = {line[0]: line[1:] for line in by_family(ROWS)}
    assert counts["decoding"] == ("1", "2", "1", "0", "0", "0", "1", "0", "2", "0")
    assert counts["all"] == ("2", "3", "2", "0", "0", "0", "1", "0", "3", "0")


def test_what_has_no_size_in_its_paper_is_counted_in_direction_only():
    figure = Figure.exact(2.0).row()
    sized = {**ROW, "figure": figure, "reported": Reported(1.5, none=1.0).row()}
    any_gain = {**sized, "reported": Reported(1.0, none=1.0).row()}
    by_grade = {**sized, "grade": "direction"}
    assert [kind(row) for row in (sized, any_gain, by_grade)] == ["reproduced", ALONE, ALONE]
    assert findings_of("flover", [sized, any_gain]) == {"reproduced": 1, ALONE: 1}
    table = dict(zip(HEAD, by_family([sized, any_gain])[0], strict=True))
    assert (table["claims"], table["reproduced"], table[ALONE]) == ("2", "1", "1")


def test_the_table_is_put_between_its_marks_and_again_without_change(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    put(path, ROWS)
    once = path.read_text()
    assert once == f"before\n{BEGIN}\n{markdown(ROWS)}\n{END}\nafter\n"
    put(path, ROWS)
    assert path.read_text() == once
    path.write_text("no marks")
    with pytest.raises(BadInput, match="no place for the table"):
        put(path, ROWS)


def test_the_readme_counts_what_is_built_and_recorded(tmp_path):
    """`workbench catalogue --findings --markdown README.md` makes it so."""
    path = tmp_path / "README.md"
    path.write_text(README.read_text(encoding="utf-8"), encoding="utf-8")
    put(path, headlines(), "\n\n".join(notes()))
    assert path.read_text(encoding="utf-8") == README.read_text(encoding="utf-8")
    assert f"{sum(each.built for each in catalogue())} of the {len(catalogue())} systems" in (
        README.read_text(encoding="utf-8")
    )


def test_a_record_keeps_what_is_not_judged_again(tmp_path):
    path = tmp_path / "findings.json"
    record(ROWS, path)
    record([{**ROW, "finding": "weaker"}], path)
    text = path.read_text()
    assert text.count("slug") == 3
    assert '"weaker"' in text and '"reproduced"' in text and "not kept" not in text
    path.write_text("{}x")
    with pytest.raises(BadInput, match="holds no findings"):
        record(ROWS, path)


def test_a_timed_claim_keeps_what_it_came_to_on_other_machines(tmp_path):
    path = tmp_path / "findings.json"
    timed = {**ROW, "timed": True, "figure": Figure.exact(2.0).row(), "finding": "weaker"}
    record([ROW | {"claim": "b"}, timed], path)
    record([ROW | {"claim": "b", "machine": "there"}, {**timed, "machine": "there"}], path)
    slower = {**timed, "machine": "there", "figure": Figure.exact(0.5).row(), "finding": "contrary"}
    record([slower], path)  # once more on that machine: replaced, not kept twice
    untimed, row = sorted(json.loads(path.read_text()), key=lambda row: row["timed"])
    assert "others" not in untimed and row["finding"] == "contrary"
    (other,) = row["others"]
    assert (other["machine"], other["finding"]) == ("here", "weaker")
    assert [one["machine"] for one in on_others(row, "third")] == ["here", "there"]
    assert on_others(row, "there") == [other]
    assert on_others(untimed, "third") == [] == on_others(None, "here")
    assert told_by_machine([row, untimed]) == (
        "Timed claims: 1, recorded on more than one machine: 1. Another finding on another "
        "machine: flover / a (contrary 0.5 on there, weaker 2 on here)."
    )
    assert told_by_machine([untimed, timed]) == ""


def test_what_is_recorded_is_computed_from_the_figures_beside_it():
    rows = [row for row in recorded() if row["figure"] and row["reported"]]
    assert len(rows) > 100
    for row in rows:
        seen = finding(Figure.of_row(row["figure"]), Reported(**row["reported"]))
        assert row["finding"] == seen, f"{row['slug']}: {row['claim']}"
