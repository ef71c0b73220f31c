"""A hundred variants of each kind of defect that once gave way (--full), a few of each always."""

import random
import shutil
import zlib
from pathlib import Path

import pytest

from engine.core.errors import BadInput
from engine.core.limits import inside
from engine.core.paths import confined, datasets
from engine.models.text.renderer import Renderer
from tests.malformed.test_corpus import Opener, clear
from tests.reliability import bombs, templates
from workbench.pages.shelf import run_files

FEW, MANY = 3, 100
OUTSIDE = "root:x:0"
INSIDE = ("<class 'type'>", "subprocess", "'os'", "<module")
DOTS = (
    "..", "../..", "..\\..", "%2e%2e", "\uff0e\uff0e", "....//", ".\u2024", "..\0", "./..",
    "a/../../..", "a", "", "~", "//",
)  # fmt: skip
ENDS = (
    "etc/passwd", "etc/passwd.run", "secret.run", ".hidden.run", "\u202eetc/passwd.run", "a\0.run",
)  # fmt: skip


@pytest.fixture(scope="module")
def opener():
    made = Opener()
    yield made
    made.close()


@pytest.fixture(scope="module")
def renderer():
    made = Renderer()
    yield made
    made.close()


@pytest.mark.parametrize("kind", bombs.KINDS)
def test_no_file_costs_more_than_its_price(opener, tmp_path, full, kind):
    wrong = []
    for seed in range(MANY if full else FEW):
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = bombs.KINDS[kind](folder, random.Random(zlib.crc32(f"{kind} {seed}".encode())))
        came = opener.open(kind, path)
        if not clear(came):
            wrong.append((seed, came))
        shutil.rmtree(folder)
    assert not wrong, wrong[:3]


@pytest.mark.parametrize("kind", templates.KINDS)
def test_no_template_escapes_or_stays(renderer, full, kind):
    messages = [{"role": "user", "content": "<a>"}]
    for seed in range(MANY if full else 5 * FEW):
        template = templates.KINDS[kind](random.Random(zlib.crc32(f"{kind} {seed}".encode())))
        try:
            text = renderer.render(template, messages)
        except BadInput as fault:
            text = str(fault)
            assert "\n" not in text and len(text) < 600
        assert "<class 'type'>" not in text and "subprocess" not in text and "'os'" not in text, (
            seed
        )


def traversals(count: int) -> list[str]:
    """Names that lead out: dots, absolute, encoded, hidden, with NUL, in other scripts."""
    draw = random.Random(24)
    starts = ("", "/", "\\", "file://x/")
    return [
        draw.choice(starts) + "/".join([*draw.choices(DOTS, k=3), draw.choice(ENDS)])
        for _ in range(count)
    ]


def test_a_hundred_ways_out_of_a_folder_are_refused(tmp_path):
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (tmp_path / "secret.run").write_text(OUTSIDE)
    (tmp_path / "root2").mkdir()
    (tmp_path / "root2" / "secret.run").write_text(OUTSIDE)
    (root / "out.run").symlink_to(tmp_path / "secret.run")
    (root / "up").symlink_to(tmp_path)
    (root / "circle.run").symlink_to("circle.run")
    names = [*traversals(100), "out.run", "up/secret.run", "../root2/secret.run", "circle.run",
             "x" * 5000 + ".run", "up/root2/secret.run"]  # fmt: skip
    for name in names:
        for ask in (run_files.inside, confined, inside):
            try:
                path = ask(root, name)
            except (BadInput, OSError, ValueError):
                continue
            assert Path(path).resolve().is_relative_to(root.resolve()), (name, ask)
    with pytest.raises(BadInput):
        confined(datasets(), "../pyproject.toml")
