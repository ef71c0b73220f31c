"""The workbench a person uses: studies, the command line, the web app and notebooks."""

import importlib
from typing import Any

__all__ = ["figure", "open_study"]


def __getattr__(name: str) -> Any:
    """Loads what is asked for first then, so that importing `workbench` stays light."""
    if name in __all__:
        module = importlib.import_module(f"workbench.notebook.{name}")
        return getattr(module, name)
    raise AttributeError(f"module 'workbench' has no attribute {name!r}")
