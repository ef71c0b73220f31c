"""The training bench: real ranks beside torch's own, on a model so small it is quick."""

from engine.core.config import update
from engine.training.parallel.config import MeshTrainingConfig
from workbench.benches import training
from workbench.benches._training import data_parallel


def test_data_parallel_and_torch_s_ddp_train_the_same_in_turn(monkeypatch):
    changes = {"mesh.data": 2, "batch": 2, "tokens": 8, "limit": 300.0, "learning.eps": 1e-4}
    case = data_parallel.Case("tiny", 2, update(MeshTrainingConfig(), changes), 4)
    monkeypatch.setattr(data_parallel, "cases", lambda full: [case])
    monkeypatch.setattr(training, "sections", lambda: {"data_parallel": data_parallel})
    said = []
    (row,) = training.run(False, said.append)
    assert set(row) == {"section", *training.KEYS}
    assert row["seconds"] > 0 < row["peer_seconds"]
    assert row["low"] <= row["ratio"] <= row["high"]
    head, line = training.table([row])
    assert len(head) == len(line)
    assert "DDP" in line[-1]
    assert any("tiny" in text for text in said)


def test_sections_are_found_by_file():
    assert "data_parallel" in training.sections()
