"""Every script of ours imports what it uses, uses what it imports, and exports what others use."""

import re

import pytest

from tests.architecture.sources import ROOT
from tests.widgets.page.script_words import declared, top_level, used, words
from widgets.page.bundle import bundle
from widgets.page.script import DEFAULT, parse, script

SCRIPTS = sorted(p for room in ("widgets", "workbench/pages") for p in (ROOT / room).rglob("*.js"))
ENTRIES = [path for path in SCRIPTS if DEFAULT in script(path).exports]
CALLED = ("replay.js", "replay_page.js")  # by lines that Python writes into a page
BROWSER = set(
    re.findall(
        r"\w+",
        """
        AbortController Array ArrayBuffer Blob Boolean CustomEvent DataView Date
        DecompressionStream Error Float32Array Float64Array ImageData Infinity Int16Array Int32Array
        Int8Array
        IntersectionObserver JSON Map Math NaN Node Number Object OffscreenCanvas Option
        PointerEvent ResizeObserver Response Set String TextDecoder URL Uint16Array Uint32Array
        Uint8Array WeakMap atob cancelAnimationFrame clearTimeout document fetch getComputedStyle
        isFinite localStorage location matchMedia navigator parseFloat parseInt performance
        requestAnimationFrame setTimeout window
        """,
    )
)


def imported(of):
    return [name for names, _ in of.imports for name in names.values()]


def faults(of):
    """Names that a script uses and nobody gives it, and those it is given for nothing."""
    listed = words(of.body)
    mine, theirs = used(listed), imported(of)
    unknown = mine - declared(listed) - set(theirs) - BROWSER
    return sorted(unknown), [name for name in theirs if name not in mine]


def name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_every_name_is_local_imported_or_the_browsers_and_every_import_is_used(path):
    assert faults(script(path)) == ([], [])


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_declarations_begin_their_lines_so_that_the_bundler_sees_each(path):
    of = script(path)
    assert list(of.names) == top_level(words(of.body))


@pytest.mark.parametrize("path", ENTRIES, ids=name)
def test_every_entry_is_one_module(path):
    text = bundle(path)
    assert text.count("export default") == 1
    listed = words(text)
    assert len(top_level(listed)) == len(set(top_level(listed)))
    assert used(listed) - declared(listed) <= BROWSER


def test_every_export_is_used_and_every_script_is_part_of_a_page():
    wanted = {(other, n) for p in SCRIPTS for names, other in script(p).imports for n in names}
    reached = {other for other, _ in wanted}
    for path in SCRIPTS:
        if path.name not in CALLED:
            exports = script(path).exports - {DEFAULT}
            assert {n for n in exports if (path, n) not in wanted} == set(), name(path)
            assert path in reached or path in ENTRIES, name(path)


def test_the_check_itself_finds_what_is_missing_and_what_is_too_much():
    text = (
        'import { a, b } from "./a.js";\nfunction f({ c, d: e }, g = a) {\n  return c + e + h;\n}\n'
    )
    assert faults(parse(text, ROOT / "x.js")) == (["h"], ["b"])
    text = "const one = `${two} ${`${three}`}`, four = (x) => ({ y: x.z, five }), r = /six/g;\n"
    assert faults(parse(text, ROOT / "x.js"))[0] == ["five", "three", "two"]
