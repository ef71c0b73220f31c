"""`Script`: one JavaScript file, with what it imports, exports and declares at its top level.

Understood of modules is what our scripts need: `import { a, b } from "./other.js"`, `import name
from "./other.js"` for a default, and `export` before a function, a class, a constant or `default`.
Declarations of the top level begin their lines, one a line.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

IMPORT = re.compile(r'^import\s+(?:\{([^}]*)\}|([\w$]+))\s+from\s+"([^"]+)";?\n', re.MULTILINE)
EXPORTED = r"(?:async )?(?:function|const|class)\b"
EXPORT = re.compile(rf"^export (?={EXPORTED})", re.MULTILINE)
OTHER = re.compile(rf"^import\b.*|^export (?!default |{EXPORTED}).*", re.MULTILINE)
DECLARED = re.compile(
    r"^(export )?(?:async )?(?:function\*?|const|let|class) ([A-Za-z_$][\w$]*)", re.MULTILINE
)
NAMED = re.compile(r"^[A-Za-z_$][\w$]*$")
DEFAULT = "default"


@dataclass(frozen=True)
class Script:
    """`imports`: (names, path) of each; a default stands as {"default": its name here}. `body`: the
    text without imports and without the word `export`, but before a default."""

    path: Path
    imports: tuple[tuple[dict[str, str], Path], ...]
    exports: frozenset[str]
    names: tuple[str, ...]  # declared at the top level
    body: str


@cache
def script(path: Path) -> Script:
    """The script at `path`, read once. Raises ValueError where it is not one we understand."""
    return parse(path.read_text(), path)


def parse(text: str, path: Path) -> Script:
    """The script of that text, whose imports are sought from `path`'s folder."""
    imports = []
    for match in IMPORT.finditer(text):
        listed, default, other = match.groups()
        names = {DEFAULT: default} if default else {n.strip(): n.strip() for n in listed.split(",")}
        names.pop("", None)
        if not other.startswith(".") or not all(map(NAMED.match, names.values())):
            raise ValueError(f"{path.name}: {match[0].strip()!r} is not understood")
        imports.append((names, (path.parent / other).resolve()))
    body = IMPORT.sub("", text)
    unknown = OTHER.search(body)
    if unknown:
        raise ValueError(f"{path.name}: {unknown[0]!r} is not understood")
    declared = DECLARED.findall(body)
    exports = {name for is_exported, name in declared if is_exported}
    if "\nexport default " in f"\n{body}":
        exports.add(DEFAULT)
    names = tuple(name for _, name in declared)
    plain = EXPORT.sub("", body).strip() + "\n"
    return Script(path, tuple(imports), frozenset(exports), names, plain)
