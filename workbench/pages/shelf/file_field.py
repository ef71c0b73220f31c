"""A field for files: their parts as a browser sends them, no more than may be opened."""

from typing import Any

import panel_material_ui as pmui

from workbench.pages.shelf.uploads import UPLOAD

LEAST = 1 << 10  # bytes that a part counts for


class FileField(pmui.FileInput):
    """Panel (panel-material-ui 0.16.6) puts by whatever parts come, of files that never end too,
    and makes a number that stands in the place of bytes into so many of them."""

    _came = 0  # bytes in parts since files were last handed on

    def _process_chunk(self, msg: dict[str, Any]) -> None:
        data = msg["data"]
        is_part = isinstance(data, bytes | bytearray | memoryview)
        self._came += max(LEAST, len(data)) if is_part else 0
        if is_part and self._came <= UPLOAD:
            super()._process_chunk(msg)
            return
        self._forget()
        said = f"at most {UPLOAD >> 20} MiB can be opened here" if is_part else "no part of a file"
        self._send_msg({"status": "error", "error": said})

    def _flush_buffer(self) -> None:
        super()._flush_buffer()
        self._forget()

    def _forget(self) -> None:
        self._file_buffer.clear()
        self._buffer.clear()
        self._came = 0
