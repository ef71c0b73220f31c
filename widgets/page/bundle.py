"""Bundle: scripts that import from one another, resolved into the one ES module a browser gets.

Each script comes once, after those it imports. They then share a scope, so that a name may be
declared by one of them alone.
"""

from functools import cache
from pathlib import Path

from widgets.page.script import DEFAULT, Script, parse, script

ROOT = Path(__file__).parents[2]  # of the packages: nothing beyond it is imported


@cache
def bundle(path: Path) -> str:
    """The ES module of the script at `path`, made once.

    Raises ValueError for an import of nothing, for imports in a circle, and for a name that two
    scripts declare.
    """
    return _bundled(script(path.resolve()))


def bundled(text: str, folder: Path) -> str:
    """The same for a script that is in no file, whose imports are sought from `folder`."""
    return _bundled(parse(text, folder.resolve() / "script.js"))


def parts(of: Script) -> list[Script]:
    """All that `of` is made of, itself last. Raises ValueError as `bundle` does."""
    ordered: dict[Path, Script] = {}
    _visit(of, ordered, ())
    owner: dict[str, str] = {}
    for part in ordered.values():
        for name in part.names:
            if name in owner:
                raise ValueError(f"{name}: declared by both {owner[name]} and {part.path.name}")
            owner[name] = part.path.name
    return list(ordered.values())


def _visit(of: Script, ordered: dict[Path, Script], path: tuple[Path, ...]) -> None:
    if of.path in path:
        circle = " -> ".join(p.name for p in (*path[path.index(of.path) :], of.path))
        raise ValueError(f"scripts import one another in a circle: {circle}")
    if of.path in ordered:
        return
    for names, other in of.imports:
        if not other.is_file() or not other.is_relative_to(ROOT):
            raise ValueError(f"{of.path.name}: imports {other.name}, and there is no such script")
        source = script(other)
        for name in names:
            if name not in source.exports:
                raise ValueError(f"{of.path.name}: {other.name} does not export {name}")
        _visit(source, ordered, (*path, of.path))
    ordered[of.path] = of


def _bundled(entry: Script) -> str:
    all_parts = parts(entry)
    called: dict[Path, str] = {}  # how those that import a default call it
    for part in all_parts:
        for names, other in part.imports:
            if DEFAULT in names and called.setdefault(other, names[DEFAULT]) != names[DEFAULT]:
                raise ValueError(f"{other.name}: its default is imported under two names")
    texts = []
    for part in all_parts:
        named = f"const {called.get(part.path)} ="
        is_named = part is not entry and part.path in called
        texts.append(part.body.replace("export default", named, 1) if is_named else part.body)
    return "\n".join(texts)
