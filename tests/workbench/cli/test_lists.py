"""What the command line lists: presets of a study, benches."""

import json

from workbench.cli.main import main


def test_presets_are_listed_with_the_words_of_their_buttons(capsys):
    assert main(["run", "flover", "--presets"]) == 0
    told = capsys.readouterr().out
    assert (
        "static" in told and "Static batches of eight" in told and "batching=static_batch" in told
    )
    assert main(["run", "flover", "--presets", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["preset"] for row in rows} >= {"alone", "static", "described"}


def test_a_list_of_benches_can_be_asked_for_by_name(capsys):
    assert main(["bench", "list", "--json"]) == 0
    assert "decode" in {row["name"] for row in json.loads(capsys.readouterr().out)}
