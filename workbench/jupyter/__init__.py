"""The workbench inside a Jupyter server: authenticated routes, and the app behind them."""

from workbench.jupyter.extension import (
    _jupyter_server_extension_points,
    _load_jupyter_server_extension,
)

__all__ = ["_jupyter_server_extension_points", "_load_jupyter_server_extension"]
