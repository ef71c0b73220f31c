"""The workbench a person uses: studies, the command line, the web app and notebooks."""

from typing import Any

__all__ = ["open_study"]


def __getattr__(name: str) -> Any:
    """Loads `open_study` when first asked for, so that importing `workbench` stays light."""
    if name == "open_study":
        from workbench.notebook.open_study import open_study

        return open_study
    raise AttributeError(f"module 'workbench' has no attribute {name!r}")
