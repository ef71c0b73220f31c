"""The table of what is predicted how well says what the records say, in the README too."""

import json

import pytest

from engine.core.errors import BadInput
from engine.core.paths import dataset
from workbench.cli.main import main
from workbench.predictions import how_well

README = dataset("predictions.md").parent.parent / "README.md"


def test_the_readme_holds_the_table_of_the_records():
    assert f"{how_well.BEGIN}\n{how_well.markdown()}\n{how_well.END}" in README.read_text("utf-8")


def test_a_row_holds_the_lowest_and_the_highest_of_its_devices():
    told = dataset(how_well.OPERATORS).read_text("utf-8").splitlines()
    lines = [[cell.strip() for cell in one.split("|")] for one in told if "| matmul |" in one]
    row = next(row for row in how_well.rows() if row[0] == "products, 16 bits")
    assert row[2] == str(sum(int(line[3]) for line in lines))
    for column, cell in ((6, row[3]), (8, row[4])):
        values = sorted(float(line[column].rstrip("%")) for line in lines)
        assert cell == f"{values[0]} to {values[-1]}%"


def test_the_command_prints_and_writes_it(tmp_path, capsys):
    assert main(["catalogue", "--predicted", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["what"] for row in rows} >= {"products, 8 bits", "training steps (mean)"}
    place = tmp_path / "some.md"
    place.write_text(f"before\n{how_well.BEGIN}\nold\n{how_well.END}\nafter\n")
    assert main(["catalogue", "--predicted", "--markdown", str(place)]) == 0
    text = place.read_text()
    assert "old" not in text and how_well.markdown() in text and text.endswith("after\n")


def test_a_file_without_a_place_is_said_in_one_line(tmp_path, capsys):
    place = tmp_path / "some.md"
    place.write_text("nothing\n")
    assert main(["catalogue", "--predicted", "--markdown", str(place)]) == 2
    assert "no place for the table" in capsys.readouterr().err
    assert main(["catalogue", "--markdown", str(place)]) == 2
    with pytest.raises(BadInput):
        how_well.put(place)
