"""The workbench a person uses: studies, the command line, the web app and notebooks."""

__all__ = ["figure", "open_study"]


def __getattr__(name: str) -> object:
    """Loads what is asked for first then, so that importing `workbench` stays light."""
    if name in __all__:
        import importlib

        module = importlib.import_module(f"workbench.notebook.{name}")
        return getattr(module, name)
    raise AttributeError(f"module 'workbench' has no attribute {name!r}")
