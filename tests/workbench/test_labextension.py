"""The lab extension's built files are those of its sources, and it knows nothing of the engine."""

import json
import re
import shutil

import pytest

from workbench.labextension.build import BUILT, HERE, MARK, build, fingerprint

LINES = 750


def scripts():
    return {path.name: path.read_text() for path in (HERE / "src").iterdir()}


def test_what_is_installed_was_built_from_the_sources_here():
    made = (BUILT / MARK).read_text().strip()
    assert made == fingerprint(), "run: python -m workbench.labextension.build"
    load = json.loads((BUILT / "package.json").read_text())["jupyterlab"]["_build"]["load"]
    assert (BUILT / load).is_file()


def test_it_is_short_and_ignorant_of_the_engine():
    assert sum(len(text.splitlines()) for text in scripts().values()) < LINES
    known = {line for text in scripts().values() for line in re.findall(r"from '(.+)'", text)}
    assert all(name.startswith(("@jupyterlab/", "@lumino/", "./", "react")) for name in known)
    words = r"engine\.|numba|torch|scheduler|attention|token"
    assert not [name for name, text in scripts().items() if re.search(words, text)]


def test_text_never_becomes_html_in_it():
    wrong = r"innerHTML|outerHTML|insertAdjacent|dangerouslySet|document\.write|eval\(|new Function"
    assert not [name for name, text in scripts().items() if re.search(wrong, text)]


def test_it_names_no_other_host():
    for path in (*(BUILT / "static").glob("*.js"), *(HERE / "src").iterdir()):
        hosts = set(re.findall(r"https?://([\w.-]+)", path.read_text()))
        assert hosts <= {"www.w3.org"}, path  # the name space of SVG, nothing one asks


def contents(folder):
    """Texts, but for the numbers and names that the bundler makes of the folder it works in."""
    texts = [path.read_text() for path in folder.rglob("*.*") if path.name != MARK]
    plain = [re.sub(r"\b[0-9a-f]{16}\b|\b\d{1,4}\b", "N", text) for text in texts]
    return sorted(plain)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine to build with")
def test_building_it_again_gives_the_same_files(tmp_path):
    build(tmp_path / "built")
    assert contents(BUILT) == contents(tmp_path / "built")
