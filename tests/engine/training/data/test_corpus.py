"""The corpus: which files count, in which order, and on which side."""

from pathlib import Path

import pytest

from engine.core.errors import BadInput
from engine.training.data.corpus import Corpus, Source, gather, held_out, standard_library, those

NAMES = [f"module_{n}.py" for n in range(60)]


def library(folder: Path) -> Path:
    for name in NAMES:
        (folder / name).write_text(f"x = {name!r}\n")
    for name in ("test/test_x.py", "site-packages/y.py", "encodings/z.py", "config-3.99-x/w.py"):
        (folder / name).parent.mkdir()
        (folder / name).write_text("left_out = True\n")
    (folder / "_sysconfigdata_here.py").write_text("left_out = True\n")
    (folder / "latin.py").write_bytes(b"# caf\xe9\n")
    (folder / "empty.py").write_text("\n")
    return folder


def test_tests_and_installed_packages_are_left_out(tmp_path: Path) -> None:
    corpus = gather(library(tmp_path))
    found = [source.path for source in corpus.training + corpus.validation]
    assert sorted(found) == sorted(NAMES)


def test_a_file_stays_on_its_side_whatever_else_is_there(tmp_path: Path) -> None:
    corpus = gather(library(tmp_path))
    assert all(held_out(source.path) for source in corpus.validation)
    assert not any(held_out(source.path) for source in corpus.training)
    assert 0 < len(corpus.validation) < len(corpus.training) / 4


def test_the_digest_names_exactly_this_text(tmp_path: Path) -> None:
    first = gather(library(tmp_path)).digest
    assert gather(tmp_path).digest == first
    (tmp_path / NAMES[0]).write_text("x = 1\n")
    assert gather(tmp_path).digest != first


def test_a_folder_without_sources_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"too few \.py files"):
        gather(tmp_path)


def test_a_part_of_it_keeps_its_sides_and_needs_both() -> None:
    a, b, c = (Source(f"{folder}/x.py", "pass") for folder in "abc")
    corpus = Corpus((a, b, c), (a, b))
    assert those(corpus, ("a/", "c/")) == Corpus((a, c), (a,))
    with pytest.raises(BadInput, match="too few files of c/"):
        those(corpus, ("c/",))


def test_this_python_has_a_library_of_megabytes() -> None:
    corpus = gather(standard_library())
    assert sum(len(source.text) for source in corpus.training) > 4_000_000
    assert any(source.path == "argparse.py" for source in corpus.training)
