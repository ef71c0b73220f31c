"""What is found by folder is found whole: as many as there are files, never silently none."""

import importlib

from engine.core.config import kinds
from engine.kernels.operator import operators
from engine.recipes.example_recipe import FOLDER, example_recipes
from tests.architecture.graph import graph
from tests.architecture.policies import Base, Concrete, Policies
from tests.architecture.prices import assigns
from widgets.view import views
from workbench.benches import kernels, training
from workbench.catalogue import study_files
from workbench.cli import bench
from workbench.cli.main import commands


def holding(folder: str, name: str) -> list[str]:
    """Modules and packages directly in a folder that have `name`, their own or handed on."""
    return [
        module
        for module, tree in graph().trees.items()
        if module.rpartition(".")[0] == folder
        and (assigns(tree, (name,)) or graph().home(module, name) != module)
    ]


def named(thing: Base | Concrete) -> type:
    return getattr(importlib.import_module(thing.module), thing.name)


def test_every_policy_of_a_folder_is_found():
    policies = Policies(graph())
    assert len(policies.bases) > 25
    for base in policies.bases:
        together = [named(other) for other in policies.bases if other.folder == base.folder]
        assert kinds(named(base)), f"{base.folder} holds no policy of {base.name}"
        for policy in policies.concrete[base]:
            assert any(kinds(b).get(policy.kind) is named(policy) for b in together), policy
        here = {policy.kind for policy in policies.concrete[base]}
        assert set(kinds(named(base))) <= here, f"a policy of {base} from elsewhere"


def test_every_view_is_found():
    assert len(views()) == len(holding("widgets.views", "VIEW")) >= 10


def test_every_command_is_found():
    folders = ("workbench.cli", "workbench.cli.other_servers")
    assert len(commands()) == sum(len(holding(each, "ABOUT")) for each in folders) >= 18


def test_every_operator_is_found_with_its_variants():
    assert len(operators()) == len(holding("engine.kernels", "OPERATOR")) >= 9
    for operator in operators().values():
        here = holding(operator.package, "VARIANT")
        assert here
        assert len(operator.variants()) <= len(here)
        assert any(variant.device == "cpu" for variant in operator.variants().values())


def test_every_example_recipe_is_found():
    assert len(example_recipes()) == len(holding(FOLDER, "RECIPE")) >= 8


def test_every_bench_is_found():
    for folder, names in (
        ("workbench.benches", bench.names()),
        ("workbench.benches._kernels", kernels.sections()),
        ("workbench.benches._training", training.sections()),
    ):
        files = [m for m in graph().inside(folder) if "._" not in m.removeprefix(folder)]
        assert len(names) == len(files) > 0, folder


def test_every_study_is_found():
    modules = {m for m in graph().trees if m.startswith("workbench.studies.") and m.count(".") == 3}
    assert set(study_files().values()) == {m for m in modules if "._" not in m}
