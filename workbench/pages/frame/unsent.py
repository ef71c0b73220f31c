"""A document's messages that Panel would leave unsent, and how they get to the browser.

What cannot be written at once, since the socket is being written to, Panel queues and writes in a
task. One that is queued while such a task awaits its writes begins a second task; but the first, at
its end, takes away the mark by which the second sees that there is something to write. That message
then waits for the page's next one, for ever if it was the last (panel 1.9.4, `panel.io.document`).
"""

from bokeh.document import Document
from panel.io import document

_written = document._dispatch_msgs


async def write_all(doc: Document) -> None:
    """Write what is queued for a document, and what was queued meanwhile."""
    await _written(doc)
    if document._WRITE_MSGS.get(doc) and doc not in document._WRITE_BLOCK:
        document._WRITE_BLOCK[doc] = True
        document._dispatch_write_task(doc, write_all, doc)


def send_all() -> None:
    """Have every message of every page sent, from now on in this process."""
    document._dispatch_msgs = write_all
