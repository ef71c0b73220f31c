"""A notebook's cells run in this process, as a kernel would: what they show becomes their outputs.

A kernel takes seconds to start and to import what this process has; `workbench notebooks run`,
which starts one for each notebook, is tried in tests/workbench/notebook.
"""

import atexit
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import RichOutput, capture_output

from workbench.notebook.run_one import inject, read


@contextmanager
def shell(folder: Path) -> Iterator[InteractiveShell]:
    """IPython without a history, its files in `folder`, for as long as a block lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder))
        main, hook = sys.modules["__main__"], sys.excepthook
        made = InteractiveShell.instance()
        # It takes the place of the main module, without which no process can be started.
        sys.modules["__main__"], sys.excepthook = main, hook
        made.history_manager.enabled = False
        try:
            yield made
        finally:
            made.atexit_operations()
            atexit.unregister(made.atexit_operations)
            InteractiveShell.clear_instance()


def run_cells(
    path: Path, parameters: Mapping[str, Any], here: InteractiveShell
) -> nbformat.NotebookNode:
    """The notebook with its `parameters`, run in its folder. Raises what a cell raises."""
    book = read(path)
    inject(book, dict(parameters), str(path))
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        for cell in (cell for cell in book.cells if cell.cell_type == "code"):
            with capture_output() as said:
                came = here.run_cell(cell.source)
            came.raise_error()
            cell.outputs = [nbformat.v4.new_output("stream", text=said.stdout)]
            cell.outputs += [shown(each) for each in said.outputs]
    finally:
        os.chdir(before)
    return book


def shown(output: RichOutput) -> nbformat.NotebookNode:
    return nbformat.v4.new_output(
        "display_data", data=output.data or {}, metadata=output.metadata or {}
    )
