"""The runs and sweeps that help texts and README show name real studies, knobs and values."""

import re
import shlex
from pathlib import Path

import pytest

from workbench.catalogue import study
from workbench.cli import main as cli
from workbench.cli.run import changes
from workbench.grid import grid

README = Path(__file__).parents[2] / "README.md"
SHOWN = re.compile(r"workbench ((?:run|sweep) [a-z][^`#\n]*)")


def examples():
    """Command lines shown, without the words of explanation two blanks after them."""
    texts = [cli.EPILOG, README.read_text(encoding="utf-8")]
    texts += [module.ABOUT for module in cli.commands().values()]
    lines = [found.split("  ")[0] for text in texts for found in SHOWN.findall(text)]
    return list(dict.fromkeys(line for line in lines if "path/to" not in line))


def test_there_are_examples():
    assert len(examples()) >= 5


@pytest.mark.parametrize("line", examples())
def test_an_example_can_be_run_as_written(line):
    args = cli.parser().parse_args(shlex.split(line))
    for point in grid(args.over) if hasattr(args, "over") else [{}]:
        study(args.slug).configured({**changes(args.set), **point}, args.preset)
    assert getattr(args, "view", "") in ("", *study(args.slug).views)


def test_every_command_is_in_the_readme():
    text = README.read_text(encoding="utf-8")
    assert not [name for name in cli.commands() if not re.search(rf"workbench {name}\b", text)]


def test_pictures_of_the_readme_are_there_and_small_with_the_command_that_made_each():
    text = README.read_text(encoding="utf-8")
    shown = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", text)
    assert len(shown) >= 4
    for words, place in shown:
        assert len(words) > 20 and f"--picture {place} " in text
        assert (README.parent / place).stat().st_size < 80_000
