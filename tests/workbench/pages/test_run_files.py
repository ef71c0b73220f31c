"""Run files below a folder: what is listed, and which paths are refused."""

import os

import pytest

from engine.core.errors import BadInput
from engine.core.file import save
from engine.core.run import Run
from tests.workbench.toy import Ticks, tick
from workbench.catalogue import study
from workbench.pages.shelf import run_files
from workbench.pages.shelf.run_files import inside
from workbench.pages.shelf.shelf import PAGES, Shelf
from workbench.pages.study import StudyPage
from workbench.pages.study_panel import StudyPanel
from workbench.session import Session, study_session


def recorded(path, count=5):
    path.parent.mkdir(parents=True, exist_ok=True)
    return save(Run.execute(tick, Ticks(count=count), study="flover").log, path)


@pytest.fixture
def folder(tmp_path):
    """A server's folder with a run, a folder in it, and what lies outside."""
    root = tmp_path / "root"
    for place in ("first.run", "sub/second.run", ".hidden/third.run", ".fourth.run"):
        recorded(root / place)
    recorded(tmp_path / "outside.run")
    recorded(tmp_path / "root-sibling/fifth.run")
    (root / "text.txt").write_text("no run")
    (root / "folder.run").mkdir()
    (root / "link.run").symlink_to(tmp_path / "outside.run")
    (root / "door").symlink_to(tmp_path)
    (root / "within.run").symlink_to(root / "first.run")
    (root / "circle.run").symlink_to(root / "circle.run")
    return root


WRONG = (
    "", ".", "..", "/", "../outside.run", "sub/../../outside.run", "./../outside.run",
    "../root-sibling/fifth.run", "link.run", "door/outside.run", "door/root-sibling/fifth.run",
    ".hidden/third.run", ".fourth.run", "sub/../.fourth.run", "circle.run", "folder.run",
    "text.txt", "missing.run", "first.run/", "first.run/x.run", "first.run\0", "\0.run",
    "..\\outside.run", "%2e%2e/outside.run", "．．/outside.run", "~/first.run", "file:first.run",
    "first.run\n", " first.run", "x" * 5000 + ".run", "/".join(["a"] * 3000) + ".run",
)  # fmt: skip


@pytest.mark.parametrize("asked", WRONG, ids=lambda path: ascii(path)[:40])
def test_paths_that_lead_elsewhere_are_refused(folder, asked):
    with pytest.raises(BadInput) as fault:
        inside(folder, asked)
    assert "\n" not in str(fault.value) and len(str(fault.value)) < 300


def test_absolute_paths_are_refused_even_into_the_folder(folder):
    for path in (folder / "first.run", folder.parent / "outside.run"):
        with pytest.raises(BadInput):
            inside(folder, str(path))


def test_what_lies_inside_is_found_through_links_too(folder):
    assert inside(folder, "sub/second.run") == (folder / "sub/second.run").resolve()
    assert inside(folder, "within.run") == (folder / "first.run").resolve()


def test_other_endings_are_refused_unless_they_are_asked_for(folder):
    (folder / "trace.json").write_text("[]")
    with pytest.raises(BadInput, match="give a .run file"):
        inside(folder, "trace.json")
    assert inside(folder, "trace.json", (".json",)) == (folder / "trace.json").resolve()
    with pytest.raises(BadInput):
        inside(folder, "../trace.json", (".json",))


def test_the_list_is_newest_first_and_leaves_out_what_cannot_be_opened(folder):
    os.utime(folder / "first.run", (1, 1))
    rows, complete = run_files.run_files(folder)
    assert {row["path"] for row in rows} == {"first.run", "sub/second.run", "within.run"}
    assert rows[0]["path"] == "sub/second.run"  # the link's time is that of what it leads to
    assert complete and all(row["bytes"] > 0 for row in rows)


def test_a_list_with_too_many_says_so(folder, monkeypatch):
    monkeypatch.setattr(run_files, "MOST", 1)
    rows, complete = run_files.run_files(folder)
    assert len(rows) == 1 and not complete


def test_a_shelf_reads_files_below_its_folder_once_until_they_change(folder):
    shelf = Shelf(folder)
    name = shelf.file("first.run")
    assert shelf.file("first.run") == name and list(shelf.runs) == [name]
    recorded(folder / "first.run", count=9)
    os.utime(folder / "first.run", (2, 2))
    again = shelf.file("first.run")
    assert again != name and len(shelf.get(again).log) > len(shelf.get(name).log)
    with pytest.raises(BadInput, match="not below"):
        shelf.file("link.run")


def test_a_shelf_without_a_folder_opens_no_file_by_address(folder):
    with pytest.raises(BadInput, match="not open here"):
        Shelf().file(str(folder / "first.run"))


def test_runs_of_open_pages_are_listed_and_can_be_named(folder):
    shelf = Shelf(folder)
    shelf.file("first.run")
    session = Session(tick, Ticks(), study="flover")
    listed = shelf.show(session)
    assert shelf.listing() == []  # nothing has run yet, and the file is a file
    session.begin().wait(300)
    assert [(row["name"], row["study"]) for row in shelf.listing()] == [(listed, "flover")]
    assert shelf.get(shelf.named(listed)) is session.run
    assert len(shelf.listing()) == 1  # kept and shown, it is one run
    shelf.hide(listed)
    assert [row["name"] for row in shelf.listing()] == ["flover"]
    with pytest.raises(BadInput, match="not on the shelf"):
        shelf.named(listed)


def test_more_study_pages_than_there_is_room_for_are_refused():
    shelf = Shelf()
    sessions = [Session(tick, Ticks(), study="flover") for _ in range(PAGES)]
    names = [shelf.show(session) for session in sessions]
    chosen = study("flover")
    late = StudyPage(StudyPanel(chosen, study_session(chosen, chosen.config)), shelf)
    with pytest.raises(BadInput, match=f"{PAGES} pages are open"):
        late.page()
    assert late.panel.session.run is None
    shelf.hide(names[0])
    shelf.check_room()
