"""Outputs that a committed notebook keeps, for places that run nothing: what it printed and still
pictures, within a size.

Live pages, scripts, widget states, counts and warnings are left out: they are large, differ from
run to run, or show nothing without a kernel.
"""

from base64 import b64decode, b64encode
from typing import Any

import nbformat

from workbench.notebook.pictures import STILL, shrunk

TEXT = 8_000  # characters of a cell's printed output
BYTES = 600_000  # of a notebook


def keep(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The executed `book` with only what is kept; of pictures beyond `BYTES` the largest go."""
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs = [kept for output in _joined(cell.outputs) for kept in _kept(output)]
            cell.execution_count = None
    book.metadata.pop("widgets", None)
    while len(nbformat.writes(book)) > BYTES and (pictures := _pictures(book)):
        cell, output = max(pictures, key=lambda pair: len(pair[1]["data"]["image/png"]))
        cell.outputs.remove(output)
    return book


def may_hold(output: dict[str, Any]) -> bool:
    """Whether a committed notebook may hold this output."""
    if output["output_type"] == "stream":
        return output["name"] == "stdout" and len(output["text"]) <= TEXT + 1
    return output["output_type"] == "display_data" and set(output["data"]) == {
        "image/png", "text/plain"
    } and STILL in output["metadata"]  # fmt: skip


def _joined(outputs: list[Any]) -> list[Any]:
    """Printed pieces that follow one another, which a kernel cuts anywhere, as one."""
    joined: list[Any] = []
    for output in outputs:
        if output["output_type"] == "stream" and output["name"] != "stdout":
            continue
        last = joined[-1] if joined else None
        if last and last["output_type"] == output["output_type"] == "stream":
            last["text"] += output["text"]
        else:
            joined.append(output)
    return joined


def _kept(output: dict[str, Any]) -> list[nbformat.NotebookNode]:
    if output["output_type"] == "stream":
        text = output["text"] if len(output["text"]) <= TEXT else output["text"][:TEXT] + "…"
        return [nbformat.v4.new_output("stream", name="stdout", text=text)]
    data = output.get("data", {})
    if STILL in output.get("metadata", {}) and "image/png" in data:
        small = b64encode(shrunk(b64decode(data["image/png"]))).decode()
        still = {"image/png": small, "text/plain": data["text/plain"]}
        return [nbformat.v4.new_output("display_data", still, metadata={STILL: True})]
    return []


def _pictures(book: nbformat.NotebookNode) -> list[tuple[nbformat.NotebookNode, Any]]:
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    return [(c, o) for c in cells for o in c.outputs if "image/png" in o.get("data", {})]
