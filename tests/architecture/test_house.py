"""The house stays furnished: no loose files, no circles, two wings, policies below their configs.

What is not so today stands in the tables of exceptions here, each of which may only get shorter.
"""

from collections import Counter

from tests.architecture.graph import circles, graph, reach
from tests.architecture.policies import Policies

MOST = 25  # modules in a folder
ALIKE = 3  # modules of a folder that begin alike, from which on they are a package

# Folders of more than MOST modules, with how many they may hold.
CROWDED = {}
# Modules of one folder that share the word before `_`, with how many.
FAMILIES = {}
END_SAYS_WHERE = "engine/kernels/"  # `tiles_cpu`, `tiles_triton`: what they share is the algorithm

# Modules that import each other, lazy and type-only imports counted.
MODULE_CIRCLES: set[tuple[str, ...]] = set()
# Mechanisms (the first three words of a module's package) that import each other.
PACKAGE_CIRCLES: set[tuple[str, ...]] = set()

SERVING = ("engine.cache", "engine.inference", "engine.reasoning", "engine.fleet")
TRAINING = ("engine.distributed", "engine.training", "engine.cluster")
BOTH = ("engine.recipes", "workbench")

# Configs that policies know which they choose among.
KNOWN_TO_ITS_POLICIES: set[str] = set()


def only_falls(found: dict[str, int], table: dict[str, int], name: str) -> None:
    """Nothing beyond the table, and nothing in it that is better by now."""
    risen = {key: n for key, n in found.items() if n > table.get(key, 0)}
    assert not risen, f"{risen}: give them a folder of their own, by what they do"
    fallen = {key: found.get(key, 0) for key, n in table.items() if found.get(key, 0) < n}
    assert not fallen, f"better than {name} in {__file__} says: lower it to {fallen} (0: delete)"


def only_shrinks(found: set, table: set, name: str) -> None:
    """The same for what is either there or not."""
    assert not found - table, "\n".join(map(str, sorted(found - table)))
    gone = sorted(table - found)
    assert not gone, f"mended since: delete from {name} in {__file__}: {gone}"


def within(module: str, rooms: tuple[str, ...]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def folders() -> dict[str, list[str]]:
    """Folder -> names of its modules."""
    found: dict[str, list[str]] = {}
    for module in graph().trees:
        if not graph().facade(module):
            folder, _, name = module.rpartition(".")
            found.setdefault(folder.replace(".", "/"), []).append(name)
    return found


def test_no_folder_is_crowded():
    counts = {folder: len(names) for folder, names in folders().items()}
    only_falls({f: n for f, n in counts.items() if n > MOST}, CROWDED, "CROWDED")


def test_files_that_begin_alike_are_a_folder():
    counts = Counter(
        f"{folder}/{name.partition('_')[0]}_"
        for folder, names in folders().items()
        for name in names
        if "_" in name.strip("_") and not f"{folder}/".startswith(END_SAYS_WHERE)
    )
    alike = {k: n for k, n in counts.items() if n >= ALIKE and not k.endswith("/_")}
    only_falls(alike, FAMILIES, "FAMILIES")


def test_no_modules_import_each_other():
    only_shrinks(set(circles(graph().between_modules())), MODULE_CIRCLES, "MODULE_CIRCLES")


def test_no_mechanisms_import_each_other():
    only_shrinks(set(circles(graph().between_packages())), PACKAGE_CIRCLES, "PACKAGE_CIRCLES")


def test_circles_are_found_wherever_they_lie():
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert circles(edges) == [("b", "c"), ("d", "e")]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_the_two_wings_know_nothing_of_each_other():
    """Not through others either: what one wing can come to holds nothing of the other."""
    edges = graph().imports
    for wing, other in ((SERVING, TRAINING), (TRAINING, SERVING)):
        reached = reach([m for m in edges if within(m, wing)], edges)
        assert not sorted(m for m in reached if within(m, other))


def test_only_recipes_and_the_workbench_know_both_wings():
    wrong = [
        module
        for module, targets in graph().imports.items()
        if any(within(t, SERVING) for t in targets)
        and any(within(t, TRAINING) for t in targets)
        and not within(module, BOTH)
    ]
    assert not wrong


def test_a_policy_knows_nothing_above_it():
    """Neither the base of a policy nor a policy imports a config that chooses among them."""
    policies = Policies(graph())
    found: dict[str, list[str]] = {}  # config -> policies that import it
    for base in policies.bases:
        above = {field.module for field in policies.fields if field.base == base}
        for module in {base.module, *graph().inside(base.folder)} - above:
            for config in graph().imports[module] & above:
                found.setdefault(config, []).append(module)
    fresh = {config: by for config, by in found.items() if config not in KNOWN_TO_ITS_POLICIES}
    assert not fresh, f"a policy takes values, never the config that names it: {fresh}"
    only_shrinks(set(found), KNOWN_TO_ITS_POLICIES, "KNOWN_TO_ITS_POLICIES")
