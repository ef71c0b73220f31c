"""The record of findings and its table."""

import pytest

from engine.core.errors import BadInput
from workbench.findings_table import BEGIN, END, by_family, markdown, put, record

ROW = {
    "slug": "flover", "claim": "a", "grade": "exact", "timed": False, "figure": None,
    "needed": None, "reported": None, "holds": True, "finding": "reproduced", "machine": "here",
    "fast": True, "sentence": "not kept",
}  # fmt: skip
ROWS = [ROW, {**ROW, "claim": "b", "finding": "contrary"}, {**ROW, "slug": "megatron"}]


def test_findings_are_counted_by_family_and_in_all():
    counts = {line[0]: line[1:] for line in by_family(ROWS)}
    assert counts["decoding"] == ("1", "2", "1", "0", "0", "1", "0", "2", "0")
    assert counts["all"] == ("2", "3", "2", "0", "0", "1", "0", "3", "0")


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
