"""Scripts that import from one another become one module, or the fault is named."""

import pytest

from widgets.page.bundle import ROOT, bundled, parts
from widgets.page.script import parse


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of scripts, taken for a part of the packages."""
    monkeypatch.setattr("widgets.page.bundle.ROOT", tmp_path)
    return tmp_path


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.js").write_text(text)


def test_each_script_comes_once_after_those_it_imports(folder):
    write(
        folder,
        low="// Low.\nexport const LOW = 1;\n",
        left='import { LOW } from "./low.js";\n\nexport function left() { return LOW; }\n',
        right='import {\n  LOW,\n} from "./low.js";\nexport class Right { at = LOW; }\n',
    )
    top = 'import { left } from "./left.js";\nimport { Right } from "./right.js"\n'
    text = bundled(top + "export default { left, Right };\n", folder)
    assert "import" not in text and text.count("export") == 1 and text.count("const LOW") == 1
    places = [
        text.index(w) for w in ("const LOW", "function left", "class Right", "export default")
    ]
    assert places == sorted(places)


def test_a_default_goes_by_the_name_it_is_imported_under(folder):
    write(folder, draw="export default { render };\nfunction render() {}\n")
    text = bundled('import drawing from "./draw.js";\ndrawing.render();\n', folder)
    assert "const drawing = { render };" in text and "export" not in text
    write(folder, other='import drawn from "./draw.js";\nexport const here = drawn;\n')
    both = 'import drawing from "./draw.js";\nimport { here } from "./other.js";\n'
    with pytest.raises(ValueError, match=r"draw\.js: its default is imported under two names"):
        bundled(both, folder)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('import { a } from "./none.js";\n', r"script\.js: imports none\.js, and there is no such"),
        ('import { b } from "./a.js";\n', r"script\.js: a\.js does not export b"),
        ('import { inner } from "./a.js";\n', r"a\.js does not export inner"),
        ('import a from "./a.js";\n', r"a\.js does not export default"),
        (
            'import { a } from "./a.js";\nconst inner = 1;\n',
            r"inner: declared by both a\.js",
        ),
        ('import { a } from "https://evil.example/a.js";\n', "not understood"),
        ('import { a as b } from "./a.js";\n', "not understood"),
        ('import * as a from "./a.js";\n', "not understood"),
        ('import "./a.js";\n', "not understood"),
        ("export { a };\n", "not understood"),
        ('import { one } from "./one.js";\n', r"in a circle: one\.js -> two\.js -> one\.js"),
        ('import { a } from "../../../../../../../../etc/a.js";\n', "there is no such script"),
    ],
)
def test_what_cannot_be_resolved_is_named(folder, text, fault):
    write(
        folder,
        a="const inner = 2;\nexport const a = inner;\n",
        one='import { two } from "./two.js";\nexport const one = () => two;\n',
        two='import { one } from "./one.js";\nexport const two = () => one;\n',
    )
    with pytest.raises(ValueError, match=fault):
        bundled(text, folder)


def test_nothing_beyond_the_packages_is_imported(tmp_path):
    write(tmp_path, a="export const a = 1;\n")
    assert not tmp_path.is_relative_to(ROOT)
    with pytest.raises(ValueError, match="no such script"):
        parts(parse('import { a } from "./a.js";\n', tmp_path / "script.js"))
